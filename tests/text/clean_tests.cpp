// Cleaning, Unicode and HTML, each where libraries differ.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include "tests/support/errors.h"
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

TEST_CASE("text: intact letters with accents between typographic marks stay, whatever bytes they look like") {
  // As ftfy.fix_encoding leaves them; fix_text straightens their quotes besides.
  Effort effort(1000);
  for (const char* text :
       {"\u201CBeyonc\u00E9\u201D\u2014live", "un caf\u00E9\u2014\u201Coui\u201D", "le caf\u00E9\u2026\u201D",
        "r\u00E9sum\u00E9\u201D\u2026", "\u201Ccaf\u00E9\u201D\u2122", "Paran\u00E1\u2019\u201D",
        "\u00AB\u00A0Beaut\u00E9\u00A0\u00BB", "NESTL\u00C9\u2122 and NESCAF\u00C9\u2122",
        "AMANH\u00C3\u2026", "Cr\u00E8me br\u00FBl\u00E9e\u2026 \u00A35",
        "\u00C6r\u00F8sk\u00F8bing, 10\u00B0\u201315\u00B0",
        "\u041F\u0420\u0418\u0412\u0415\u0422, \u043C\u0438\u0440\u2014\u201C\u0434\u0430\u201D",
        "\u00D0uro & \u00C5se \u2013 \u00B12\u00B0"}) {
    CAPTURE(text);
    CHECK(fix_mojibake(text, effort) == text);
  }
}

TEST_CASE("text: UTF-8 read with a wrong table is repaired as ftfy repairs it") {
  struct Case {
    const char *text, *repaired;
  };
  for (const Case& c :
       {Case{"\u0420\u045A\u0420\u0455\u0421\u0403\u0421\u201A "
             "\u0420\u0405\u0420\u0455\u0421\u2021\u0421\u040A\u0421\u040B",
             "\u041C\u043E\u0441\u0442 \u043D\u043E\u0447\u044C\u044E"},
        {"p\u0139\u2122\u0102\u00ADli\u0139\u02C7 \u0139\u013Elu\u0139\u0104ou\u00C4\u0164k\u0102\u02DD "
         "k\u0139\u017B\u0139\xC2\x88",
         "p\u0159\u00EDli\u0161 \u017Elu\u0165ou\u010Dk\u00FD k\u016F\u0148"},
        {"\u039E\u2018\u039E\u0388\u039E\u00AE\u039E\u00BD\u039E\u00B1, \u039F\u0192\u039F\u201E\u039E\u038F "
         "\u039E\u00BB\u039E\u0389\u039E\u038C\u039E\u00AC\u039E\u00BD\u039E\u0389",
         "\u0391\u03B8\u03AE\u03BD\u03B1, \u03C3\u03C4\u03BF \u03BB\u03B9\u03BC\u03AC\u03BD\u03B9"},
        {"g\u00C3\u00BCne\u00C5\u0178li bir g\u00C3\u00BCn", "g\u00FCne\u015Fli bir g\u00FCn"},
        {"\u0101\u20AC\xC2\x9C\u00C4\u00B7irsis\u0101\u20AC\u00AF un \u00C4\xC2\x81"
         "bols",
         "\"\u0137irsis\" un \u0101bols"},
        {"za\u0139\u017A\u0102\u0142\u0139\xC2\x82\u00C4\xC2\x87 "
         "g\u00C4\xC2\x99\u0139\xC2\x9Bl\u00C4\xC2\x85 ja\u0139\u015F\u0139\xC2\x84",
         "za\u017C\u00F3\u0142\u0107 g\u0119\u015Bl\u0105 ja\u017A\u0144"},
        {"se\u221A\u00B1or \u201A\u00C4\u00EE \u201A\u00C4\u00FAs\u221A\u2260\u201A\u00C4\u00F9",
         "se\u00F1or \u2014 \"s\u00ED\""},
        {"na\u251C\u00BBve caf\u251C\u2310", "na\u00EFve caf\u00E9"},
        {"pla\u00C3\u2026\u00C2\u00BEa ob morju", "pla\u017Ea ob morju"},
        {"voil\u00C3  le travail \u00C3  la mode", "voil\u00E0 le travail \u00E0 la mode"},
        {"fui \u00C3 s compras", "fui \u00E0s compras"},
        {"\u00E2\u20AC\u0153 like this \u00E2\u20AC\uFFFD", "\" like this \uFFFD"},
        {"a caf\u00C3? and a r\u00C3\u00A9sum\u00C3\u00A9", "a caf\uFFFD and a r\u00E9sum\u00E9"},
        {"\u4E2D \u00E2\u20AC\u0153fa\u00C3\u00A7ade\u00E2\u20AC\xC2\x9D and Z\u00FCrich",
         "\u4E2D \"fa\u00E7ade\" and Z\u00FCrich"},
        {"l\u2019humanit\u00C3\u00A9", "l'humanit\u00E9"},
        {"a\xC2\x85"
         "b\xC2\x99 \u4E2D",
         "a\u2026b\u2122 \u4E2D"},
        {"a \u00F0\u0178\u2018\xC2\x8D\u00F0\u0178\xC2\x8F\u00BD sign", "a \U0001F44D\U0001F3FD sign"},
        {"\u00C3\u00A9 \u00ED\u00A0\u00BD\u00ED\u00B1\xC2\x8D", "\u00E9 \U0001F44D"},
        {"\u00C3\u00A9 \u00C0\xC2\x80x", "\u00E9 x"},
        {"\u0412\u0405 of 10\u0412\u0456", "\u0412\u0405 of 10\u0412\u0456"},
        {"\u00E2\u201A\u00AC 5, \u00C3\u2014 3", "\u20AC 5, \u00D7 3"},
        {"&Atilde;&copy;t&Atilde;&copy;", "\u00E9t\u00E9"},
        {"x\uFFFD\uFFFD y", "x\uFFFD\uFFFD y"},
        {"&amp;amp;amp;#233;t&amp;eacute;", "\u00E9t\u00E9"},
        {"&am\x01p;lt;", "<"},
        {"\uFF06amp;gt;", ">"},
        {"&#27;[1m\x1B[3&#49;mred", "[1mred"}}) {
    CAPTURE(c.text);
    CHECK(fix_text(c.text) == c.repaired);
  }
}

TEST_CASE("text: repairs take no quadratic time, or end with an Error") {
  constexpr std::size_t kMany = std::size_t{1} << 17;
  std::string nested = "&", accents, damaged;
  for (std::size_t i = 0; i < kMany; ++i) nested += "amp;", accents += "\u00E9", damaged += "\u00C3\u00A9";
  CHECK(fix_text(nested) == "&");
  CHECK(fix_text(accents) == accents);
  CHECK(fix_text(damaged) == accents);
  // 100 levels in a line with an accent are repaired, 100 thousand are not.
  std::string deep = "\u00E9 &";
  for (int i = 0; i < 100; ++i) deep += "amp;";
  CHECK(fix_text(deep) == "\u00E9 &");
  CHECK_ERROR(vit::ErrorKind::argument, ("nested too deep"), fix_text("\u00E9 " + nested));
}

TEST_CASE("text: open_clip's three rules") {
  const std::string text = "  A_photo, of\ta &lt;Cat&gt;! ";
  CHECK(clean(text, Cleaning::lower) == "a_photo, of a <cat>!");
  CHECK(clean(text, Cleaning::whitespace) == "A_photo, of a <Cat>!");
  CHECK(clean(text, Cleaning::canonicalize) == "a photo of a cat");
  CHECK(clean(text, Cleaning::none) == text);
}
