// Names of classes in every form that they are kept in, and what is refused.
#include "vit/io/class_names.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

/// A file and what is read of it.
struct Form {
  const char* file;
  std::string content;
  std::vector<std::string> names;
  std::vector<std::string> ids{};
  std::vector<std::string> categories{};
};

const std::vector<std::string> kNames{"cat", "dog", "giant panda"};

/// A file and what the message about it names.
struct Refused {
  const char* file;
  std::string content;
  std::vector<std::string> words;
};

}  // namespace

TEST_CASE("labels: every form of a file names the same classes") {
  const std::vector<Form> forms{
      {"lines.txt", "cat\ndog\ngiant panda\n", kNames},
      {"no_extension", "cat\r\ndog\r\ngiant panda\r\n\r\n", kNames},
      {"mark.txt",
       "\xEF\xBB\xBF"
       "cat\ndog\ngiant panda",
       kNames},
      {"ids.txt", "n1\tcat\nn2\tdog\nn3\tgiant panda\n", kNames, {"n1", "n2", "n3"}},
      {"synset_words.txt",
       "n02123045 cat\nn02084071 dog\nn02510455 giant panda\n",
       kNames,
       {"n02123045", "n02084071", "n02510455"}},
      {"categories_places.txt", "dog 1\ncat 0\ngiant panda 2\n", kNames},
      {"numbers_first.txt", "1 dog\n0 cat\n2 giant panda\n", kNames},
      {"semicolons.csv", "id;name\n2;giant panda\n0;cat\n1;dog\n", kNames},
      {"numbered.txt", "digit 0\ndigit 1\n", {"digit 0", "digit 1"}},  // numbers that belong to the names
      {"list.json", R"(["cat", "dog", "giant panda"])", kNames},
      {"list.txt", R"(["cat", "dog", "giant panda"])", kNames},
      {"pairs.json", R"([["n1", "cat"], ["n2", "dog"], ["n3", "giant panda"]])", kNames, {"n1", "n2", "n3"}},
      {"by_index.json", R"({"2": "giant panda", "0": "cat", "1": "dog"})", kNames},
      {"imagenet_class_index.json",
       R"({"0": ["n1", "cat"], "2": ["n3", "giant panda"], "1": ["n2", "dog"]})",
       kNames,
       {"n1", "n2", "n3"}},
      {"class_to_idx.json", R"({"dog": 1, "giant panda": 2, "cat": 0})", kNames},
      {"folders_of_digits.json", R"({"10": 1, "7": 2, "1": 0})", {"1", "10", "7"}},
      {"identity.json", R"({"0": 0, "1": 1})", {"0", "1"}},
      {"integers.json", R"({"0": 30, "1": 20})", {"30", "20"}},
      {"config.json", R"({"model_type": "vit", "id2label": {"1": "dog", "0": "cat", "2": "giant panda"}})",
       kNames},
      {"label2id.json", R"({"label2id": {"dog": 1, "cat": 0, "giant panda": 2}})", kNames},
      {"swapped.json", R"({"class_to_idx": {"0": 1, "1": 0}})", {"1", "0"}},
      {"timm.json", R"({"architecture": "x", "label_names": ["cat", "dog", "giant panda"]})", kNames},
      {"names.csv", "name\ncat\ndog\ngiant panda\n", kNames},
      {"id.csv", "id,name\n2,giant panda\n0,cat\n1,dog\n", kNames},
      {"index.csv", "Label,Index\ndog,1\ncat,0\ngiant panda,2\n", kNames},
      {"class_id.tsv", "class_id\tclass_name\n1\tdog\n2\tgiant panda\n0\tcat\n", kNames},
      {"tab.txt", "giant panda\t2\ncat\t0\ndog\t1\n", kNames},
      {"tab_first.txt", "2\tgiant panda\n0\tcat\n1\tdog\n", kNames},
      {"comma.txt", "giant panda,2\ncat,0\ndog,1\n", kNames},
      {"comma.csv", "giant panda,2\ncat,0\ndog,1\n", kNames},
      {"no_header_commas.txt", "1, dog, hound\n0, cat, tabby\n", {"cat, tabby", "dog, hound"}},
      {"comma_first.csv", "2,giant panda\n0,cat\n1,dog\n", kNames},
      {"no_header.tsv", "0\tcat\n2\tgiant panda\n1\tdog\n", kNames},
      {"semicolon.txt", "giant panda;2\ncat;0\ndog;1\n", kNames},
      {"colon.txt", "2: giant panda\n0: cat\n1: dog\n", kNames},
      {"printed.txt", "{0: 'cat',\n 2: \"giant panda\",\n 1: 'dog'}", kNames},
      {"commas.txt", "1, dog, hound\n0, cat, tabby\n", {"cat, tabby", "dog, hound"}},
      {"header.txt", "class\tnumber\ngiant panda\t2\ncat\t0\ndog\t1\n", kNames},
      {"other_header.csv", "Nummer,Klasse\n2,giant panda\n0,cat\n1,dog\n", kNames},
      {"label_is_index.csv", "label,class_name\n2,giant panda\n0,cat\n1,dog\n", kNames},
      {"name_is_index.csv", "name,label\n2,giant panda\n0,cat\n1,dog\n", kNames},
      {"cranes.txt", "0: crane\n2: crane\n1: dog\n", {"crane", "dog", "crane"}},
      {"numbers.tsv", "1\t1\n0\t0\n", {"0", "1"}},
      {"coco_ids.txt", "11\tcat\n90\tdog\n", {"cat", "dog"}, {"11", "90"}},
      {"times.txt", "at 8:30\nat 9:30\n", {"at 8:30", "at 9:30"}},
      {"synsets.csv", "id,name\nn1,cat\nn2,dog\nn3,giant panda\n", kNames, {"n1", "n2", "n3"}},
      {"both.csv", "index,wnid,name\n1,n2,dog\n0,n1,cat\n2,n3,giant panda\n", kNames, {"n1", "n2", "n3"}},
      {"selected_tags.csv",
       "tag_id,name,category,count\n9,cat,0,5\n4,dog,4,3\n8,giant panda,9,1\n",
       kNames,
       {},
       {"0", "4", "9"}},
      {"quoted.csv", "name\n\"cat, tabby\"\n\"a \"\"dog\"\"\"\n", {"cat, tabby", "a \"dog\""}},
      {"plain.csv", "cat, tabby\ndog\n", {"cat, tabby", "dog"}},  // lines, for all their extension
  };
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  for (const Form& form : forms) {
    CAPTURE(form.file);
    const ClassList found = read_class_list(folder.write(form.file, form.content));
    CHECK(found.names == form.names);
    CHECK(found.ids == form.ids);
    CHECK(found.categories == form.categories);
  }
}

TEST_CASE("labels: what does not fit is refused, and says why") {
  const std::vector<Refused> files{
      {"gap.json", R"({"0": "cat", "2": "panda"})", {"0 to 1", "found 2"}},
      {"from_one.json", R"({"1": "cat", "2": "dog"})", {"0 to 1", "found 2"}},
      {"twice.json", R"({"cat": 0, "dog": 0})", {"dog", "class 0 already has a name"}},
      {"either.json", R"({"0": 1, "1": 0})", {"class_to_idx", "id2label"}},
      {"nested.json", R"([["a", "b", "c"]])", {"nested.json", "string"}},
      {"number.json", "3", {"a list or an object"}},
      {"mixed.json", R"({"cat": 0, "dog": "1"})", {"cat", "the key must be a class index"}},
      {"negative.json", R"({"background": -1, "cat": 0})", {"background"}},
      {"twice.csv", "id,name\n0,cat\n0,dog\n", {"class 0 appears twice"}},
      {"gap.csv", "id,name\n0,cat\n2,dog\n", {"class 2 among 2 rows"}},
      {"short.csv", "id,name\n0,cat\n1\n", {"line 3", "1 fields below a header of 2"}},
      {"open.csv", "name\n\"cat\n", {"does not close"}},
      {"no_header.csv", "0,cat,a\n1,dog,b\n3,owl,c\n", {"without a header"}},
      {"from_one.txt", "1\tcat\n2\tdog\n3\towl\n", {"from 0 to 2", "numbered from 0"}},
      {"from_one_last.txt", "cat,1\ndog,2\nowl,3\n", {"from 0 to 2", "numbered from 0"}},
      {"from_one_space.txt", "1 cat\n2 dog\n3 owl\n", {"from 0 to 2", "numbered from 0"}},
      {"from_one_colon.txt", "1: cat\n2: dog\n3: owl\n", {"numbered from 0"}},
      {"either.tsv", "1\t0\n0\t1\n", {"both columns", "header"}},
      {"latin1.txt", "cat\nK\xE4tzchen\n", {"line 2", "not UTF-8"}},
      {"latin1.json", "[\"K\xE4tzchen\"]", {"latin1.json", "not UTF-8"}},
      {"latin1.csv", "name\nK\xE4tzchen\n", {"line 2", "not UTF-8"}},
      {"utf16.txt",
       std::string("\xFF\xFE"
                   "c\0a\0t\0",
                   8),
       {"UTF-16"}},
      {"data.yaml", "names:\n  0: cat\n  1: dog\n", {"YAML", "--labels"}},
      {"some_ids.txt", "n1\tcat\ndog\n", {"only some lines"}},
  };
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  for (const Refused& file : files) {
    CAPTURE(file.file);
    const std::string message = message_of([&] { read_class_list(folder.write(file.file, file.content)); });
    CAPTURE(message);
    for (const std::string& word : file.words) CHECK(contains(message, word));
  }
}
