"""Writes html_entities.inc, the names of HTML 5 and their characters, from Python's html.entities.

    python3 vit/text/make_html_entities.py > vit/text/html_entities.inc
"""

from html.entities import html5


def literal(text):
    simple = {"\t": "\\t", "\n": "\\n", '"': '\\"', "\\": "\\\\"}
    return "".join(
        simple.get(c) or (c if " " <= c <= "~" else f"\\u{ord(c):04X}" if ord(c) < 0x10000 else f"\\U{ord(c):08X}")
        for c in text
    )


print("// Written by make_html_entities.py: name (with its semicolon where it needs one), characters; sorted by name.")
for name, characters in sorted(html5.items(), key=lambda item: item[0].encode()):
    print(f'{{"{name}", "{literal(characters)}"}},')
