"""Writes code_pages.inc, what bytes 0x80 to 0xFF are in the code pages that mojibake.cpp tries, from Python's codecs.
A byte that a page leaves undefined is the character of the same number.

    python3 vit/text/make_code_pages.py > vit/text/code_pages.inc
"""

PAGES = ["cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1257", "iso8859-2", "mac-roman", "cp437"]


def character(byte, page):
    try:
        return ord(bytes([byte]).decode(page))
    except UnicodeDecodeError:
        return byte


print("// Written by make_code_pages.py: the characters of bytes 0x80 to 0xFF, one page after the other.")
for page in PAGES:
    print(f"{{  // {page}")
    for row in range(0x80, 0x100, 16):
        print("    " + ", ".join(f"0x{character(byte, page):X}" for byte in range(row, row + 16)) + ",")
    print("},")
