# The folder in which README.md's blocks run: model, photo.jpg and photos/.
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}/photos")
file(CREATE_LINK "${ROOT}/data/model" "${FOLDER}/model" SYMBOLIC)
file(COPY_FILE "${ROOT}/data/images/cat_tabby.jpg" "${FOLDER}/photo.jpg")
file(GLOB pictures "${ROOT}/data/images/*.png" "${ROOT}/data/images/*.jpg")
list(SUBLIST pictures 0 4 pictures)
file(COPY ${pictures} DESTINATION "${FOLDER}/photos")
