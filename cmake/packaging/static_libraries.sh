# Static libraries from Debian's sources, for systems of which Debian has no packages. To be sourced after apps/setup.sh, by what
# sets libraries (a folder, in which sources/ is filled by fetch_sources, and prefix/ by these functions) and foreign (options of
# CMake for another machine or system).

# fetch_sources FOLDER NAME...: the sources of Debian's packages, of the release that this machine has, into FOLDER/sources/NAME.
fetch_sources() {
  local folder=$1 apt=$1/apt name
  mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache" "$folder/sources"
  # shellcheck disable=SC1091
  local release; release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  for name in "debian $release $release-updates" "debian-security $release-security"; do
    printf 'Types: deb-src\nURIs: http://deb.debian.org/%s\nSuites: %s\nComponents: main\nSigned-By: %s\n\n' \
      "${name%% *}" "${name#* }" /usr/share/keyrings/debian-archive-keyring.gpg
  done >"$apt/parts/debian.sources"
  local options=(--option Dir::Etc::SourceList=/dev/null --option "Dir::Etc::SourceParts=$apt/parts"
                 --option "Dir::State::Lists=$apt/lists" --option "Dir::Cache=$apt/cache")
  apt-get "${options[@]}" --quiet=2 update
  for name in "${@:2}"; do
    [[ ! -d $folder/sources/$name ]] || continue
    (cd "$folder/sources" && apt-get "${options[@]}" --quiet=2 source --download-only "$name" &&
      dpkg-source --no-check --extract "$name"_*.dsc "$name.part" && mv "$name.part" "$name") >"$folder/$name.log" 2>&1 ||
      { tail "$folder/$name.log" >&2; return 1; }  # apt has verified the file list's signature
  done
}

# logged NAME COMMAND...: shows the end of what it writes if it fails.
logged() {
  "${@:2}" >>"$libraries/$1.log" 2>&1 || { tail "$libraries/$1.log" >&2; return 1; }
}

# configure_library NAME FOLDER OPTION...: by the CMake files of FOLDER, below sources/ if it is no absolute path.
configure_library() {
  local folder=$2
  [[ $folder == /* ]] || folder=$libraries/sources/$folder
  mkdir -p "$libraries/build"
  logged "$1" cmake -S "$folder" -B "$libraries/build/$1" -G Ninja --log-level=WARNING -Wno-dev -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$libraries/prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$libraries/prefix" \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF "${foreign[@]}" "${@:3}"
}

# build_library NAME TARGET...
build_library() {
  logged "$1" cmake --build "$libraries/build/$1" --parallel "$(compile_jobs)" --target "${@:2}"
}

# install_library NAME FOLDER OPTION...: both.
install_library() {
  configure_library "$@"
  build_library "$1" install
}

# install_sources NAME LANGUAGE INCLUDE HEADERS DEFINITIONS SOURCE...: libNAME.a of these sources, whose own files configure no
# library for another system. HEADERS are files, or one folder; they and INCLUDE are below sources/, each SOURCE below $libraries.
install_sources() {
  local folder=$libraries/lists/$1 sources=("${@:6}") headers install=FILES
  read -ra headers <<<"$4"
  headers=("${headers[@]/#/$libraries/sources/}")
  [[ ! -d ${headers[0]} ]] || install=DIRECTORY
  mkdir -p "$folder"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' "project($1 LANGUAGES $2 ASM)" "file(GLOB sources ${sources[*]/#/$libraries/})" \
    "add_library($1 STATIC \${sources})" "target_include_directories($1 PRIVATE $libraries/sources/$3)" "target_compile_definitions($1 PRIVATE $5)" \
    "install(TARGETS $1 ARCHIVE DESTINATION lib)" "install($install ${headers[*]} DESTINATION include)" >"$folder/CMakeLists.txt"
  install_library "$1" "$folder"
}

install_yuv() {
  configure_library libyuv libyuv -DCMAKE_DISABLE_FIND_PACKAGE_JPEG=ON
  build_library libyuv yuv
  mkdir -p "$libraries/prefix/lib" "$libraries/prefix/include"
  cp "$libraries/build/libyuv/libyuv.a" "$libraries/prefix/lib/"
  cp -r "$libraries"/sources/libyuv/include/* "$libraries/prefix/include/"
}

# After install_yuv. aom is the decoder that vit asks for; the others give the same pixels.
install_avif() {
  install_library libavif libavif -DAVIF_CODEC_AOM=ON -DAVIF_CODEC_AOM_ENCODE=OFF -DLIBYUV_LIBRARY="$libraries/prefix/lib/libyuv.a" \
    -DLIBYUV_INCLUDE_DIR="$libraries/prefix/include"
}

# install_drawing OPTION...: OpenCV as Debian configures it, but without what is not for drawing.
install_drawing() {
  install_library opencv opencv -DBUILD_LIST=core,imgproc -DCPU_DISPATCH= -DOPENCV_GENERATE_PKGCONFIG=OFF \
    -DWITH_{1394,ADE,CAROTENE,EIGEN,FFMPEG,GSTREAMER,GTK,IPP,ITT,JASPER,JPEG,LAPACK,OPENCL,OPENEXR,OPENJPEG,OPENMP,PNG,PROTOBUF}=OFF \
    -DWITH_{PTHREADS_PF,QUIRC,TBB,TIFF,V4L,VA,VA_INTEL,WEBP}=OFF -DBUILD_{EXAMPLES,JAVA,PERF_TESTS,TESTS,ZLIB,opencv_apps,opencv_python3}=OFF "$@"
}

# make_icu_table FOLDER LIBICUDATA [TOOLS]: FOLDER/table.dat, those of ICU's 31 MB of tables that normalization and grapheme clusters
# read, and what these name (vit/text/unicode.cpp). Prints the name by which ICU knows it. TOOLS is what
# the names of binutils begin with.
make_icu_table() {
  (rm -rf "$1" && mkdir -p "$1/all" && cd "$1"
    "${3-}ar" x "$2"
    symbol=$("${3-}nm" ./*.o | awk '$2 == "R" {print $3}') table=${symbol%_dat}l.dat  # l: little endian
    "${3-}objcopy" --output-target=binary --only-section=.rodata ./*.o "all/$table"
    icupkg --list "all/$table" | grep -Evx '(brkitr/)?root\.res|pool\.res|brkitr/.*\.(brk|dict)|nfkc\.nrm' >others.txt
    icupkg --remove others.txt "all/$table" "$table"
    mv "$table" table.dat
    echo "$symbol")
}

# make_icu_data SECTION LIBICUDATA [TOOLS [LINE...]]: build/icu/data.s, which holds the table of make_icu_table in SECTION of an
# object file, followed by the other lines.
make_icu_data() {
  local folder=$libraries/build/icu symbol
  symbol=$(make_icu_table "$folder" "$2" "${3-}")
  printf '%s\n' ".section $1" '.balign 16' ".globl $symbol" "$symbol: .incbin \"$folder/table.dat\"" "${@:4}" >"$folder/data.s"
}
