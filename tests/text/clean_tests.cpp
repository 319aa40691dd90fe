// Cleaning, Unicode and HTML, each where libraries differ.
#include <doctest/doctest.h>

#include <string>

#include "vit/base/error.h"
#include "vit/text/clean.h"
#include "vit/text/unicode.h"

using namespace vit::internal;

TEST_CASE("text: lower case with and without the context of a letter") {
  CHECK(lower_text("\u039F\u0394\u039F\u03A3") == "\u03BF\u03B4\u03BF\u03C2");     // final sigma
  CHECK(lower_letters("\u039F\u0394\u039F\u03A3") == "\u03BF\u03B4\u03BF\u03C3");  // none
  CHECK(lower_text("\u0130") == "i\u0307");
  CHECK(lower_letters("\u0130") == "i\u0307");
}

TEST_CASE("text: white space is of two kinds") {
  CHECK(is_python_space(0x1C));
  CHECK_FALSE(is_white_space(0x1C));
  CHECK(is_white_space(0x85));
  CHECK_FALSE(is_python_space(0x200B));
  CHECK(join_words("\u3000 a\t\n b\u00A0") == "a b");
}

TEST_CASE("text: clusters") {
  CHECK(cluster_ends("a\r\nb") == std::vector<std::size_t>{1, 3, 4});
  CHECK(cluster_ends("e\u0323\u0307x") == std::vector<std::size_t>{5, 6});
}

TEST_CASE("text: UTF-8 is checked") {
  for (const char* text : {"", "a", "\u00E9", "\u20AC", "\U0001F600", "\uFFFD"})
    CHECK_NOTHROW(check_utf8(text));
  for (const char* text :
       {"\x80", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE0\x80\x80", "\xFF"}) {
    CHECK_THROWS_AS(check_utf8(text), vit::Error);
  }
}

TEST_CASE("text: character references as Python reads them") {
  CHECK(unescape_html("&lt;b&gt; &eacute; &#233; &#xE9;") == "<b> \u00E9 \u00E9 \u00E9");
  CHECK(unescape_html("&notit; &notin; &amp") == "\u00ACit; \u2209 &");
  CHECK(unescape_html("&#128; &#0; &#xD800; &#1114112; &#1;") == "\u20AC \uFFFD \uFFFD \uFFFD ");
  CHECK(unescape_html("& &; &#; &#x; &unknown;") == "& &; &#; &#x; &unknown;");
}

TEST_CASE("text: repairs as ftfy makes them") {
  CHECK(fix_text("&EACUTE; &#59; &amp; a&b") == "\u00C9 &#59; & a&b");
  CHECK(fix_text("<i> &amp;") == "<i> &amp;");  // HTML is decoded elsewhere
  CHECK(fix_text("\uFB01ne \u01C4") == "fine D\u017D");
  CHECK(fix_text("\uFF26\uFF55\uFF4C\uFF4C\u3000") == "Full ");
  CHECK(fix_text("\u201Ca\u201D \u2018b\u2019 \u201Ec\u00BB \u201A") == "\"a\" 'b' \"c\u00BB '");
  CHECK(fix_text("a\r\nb\rc\u2028d") == "a\nb\nc\nd");
  CHECK(fix_text("\033[31mred\033[0m \x07\uFEFF") == "red ");
  CHECK(fix_text("e\u0301") == "\u00E9");
  CHECK(fix_text("\u0093x\u0094") == "\"x\"");  // C1 controls
}

TEST_CASE("text: UTF-8 read as Latin-1 or windows-1252") {
  CHECK(fix_text("caf\u00C3\u00A9") == "caf\u00E9");
  CHECK(fix_text("\u00D0\u0178\u00D1\u20AC\u00D0\u00B8\u00D0\u00B2\u00D0\u00B5\u00D1\u201A") ==
        "\u041F\u0440\u0438\u0432\u0435\u0442");
  CHECK(fix_text("don\u00E2\u20AC\u2122t") == "don't");
  CHECK(fix_text("Graffiti \u00C3\u00BCber Z\u00FCrich") == "Graffiti \u00FCber Z\u00FCrich");  // in part
  // Correct as given.
  for (const char* text :
       {"caf\u00E9", "\u00D7\u00B7", "10 \u00D7 15 cm", "\u00C9\u00AE", "S\u00E3o Paulo \u2013 \u00C5"}) {
    CHECK(fix_text(text) == text);
  }
}

TEST_CASE("text: open_clip's three rules") {
  const std::string text = "  A_photo, of\ta &lt;Cat&gt;! ";
  CHECK(clean(text, Cleaning::lower) == "a_photo, of a <cat>!");
  CHECK(clean(text, Cleaning::whitespace) == "A_photo, of a <Cat>!");
  CHECK(clean(text, Cleaning::canonicalize) == "a photo of a cat");
  CHECK(clean(text, Cleaning::none) == text);
}
