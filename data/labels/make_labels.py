"""Writes imagenet1k.txt: synset id and words of the 1000 ImageNet-1k classes in index order, from the lists
that timm carries.

    python data/labels/make_labels.py            (needs timm)
"""

from pathlib import Path

from timm.data import ImageNetInfo


def main():
    info = ImageNetInfo("imagenet-1k")
    lines = [f"{synset}\t{info.label_name_to_description(synset)}\n" for synset in info.label_names()]
    (Path(__file__).parent / "imagenet1k.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
