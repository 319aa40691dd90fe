#include "vit/io/pickle_program.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace vit::internal::pickle {
namespace {

constexpr StorageType kStorageTypes[] = {
    {"FloatStorage", Dtype::f32, 4},
    {"HalfStorage", Dtype::f16, 2},
    {"BFloat16Storage", Dtype::bf16, 2},
    {"DoubleStorage", Dtype::f64, 8},
    {"LongStorage", Dtype::i64, 8},
    {"IntStorage", Dtype::i32, 4},
    {"ShortStorage", Dtype::i16, 2},
    {"CharStorage", Dtype::i8, 1},
    {"ByteStorage", Dtype::u8, 1},
    {"BoolStorage", Dtype::boolean, 1},
    {"ComplexFloatStorage", Dtype::other, 8},
    {"ComplexDoubleStorage", Dtype::other, 16},
    {"UntypedStorage", Dtype::u8, 1},
};
/// Element types without a separate storage class.
constexpr StorageType kDtypes[] = {
    {"float8_e4m3fn", Dtype::other, 1},   {"float8_e5m2", Dtype::other, 1},
    {"float8_e4m3fnuz", Dtype::other, 1}, {"float8_e5m2fnuz", Dtype::other, 1},
    {"float8_e8m0fnu", Dtype::other, 1},  {"uint16", Dtype::other, 2},
    {"uint32", Dtype::other, 4},          {"uint64", Dtype::other, 8},
};

struct KnownGlobal {
  std::string_view module;
  std::string_view name;
  Global global;
};

constexpr KnownGlobal kGlobals[] = {
    {"collections", "OrderedDict", Global::ordered_dict},
    {"collections", "Counter", Global::counter},
    {"torch", "Size", Global::size},
    {"torch._utils", "_rebuild_tensor", Global::rebuild_old_tensor},
    {"torch._utils", "_rebuild_tensor_v2", Global::rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v3", Global::rebuild_typed_tensor},
    {"torch._utils", "_rebuild_parameter", Global::rebuild_parameter},
    {"torch._utils", "_rebuild_parameter_with_state", Global::rebuild_parameter_and_state},
    {"torch._tensor", "_rebuild_from_type_v2", Global::rebuild_subclass},
};

/// Modules that no checkpoint references: they run programs, load code or access the network.
constexpr std::string_view kRefusedModules[] = {"_ctypes",
                                                "_frozen_importlib",
                                                "_io",
                                                "_pickle",
                                                "_posixsubprocess",
                                                "_socket",
                                                "_thread",
                                                "aiohttp",
                                                "asyncio",
                                                "bdb",
                                                "cPickle",
                                                "cffi",
                                                "code",
                                                "codeop",
                                                "commands",
                                                "cProfile",
                                                "ctypes",
                                                "dill",
                                                "distutils",
                                                "doctest",
                                                "ensurepip",
                                                "fileinput",
                                                "ftplib",
                                                "gc",
                                                "http",
                                                "httplib",
                                                "imp",
                                                "importlib",
                                                "inspect",
                                                "joblib",
                                                "linecache",
                                                "marshal",
                                                "mmap",
                                                "multiprocessing",
                                                "nt",
                                                "os",
                                                "pdb",
                                                "pickle",
                                                "pip",
                                                "pkg_resources",
                                                "pkgutil",
                                                "platform",
                                                "posix",
                                                "profile",
                                                "pty",
                                                "pydoc",
                                                "requests",
                                                "runpy",
                                                "setuptools",
                                                "shelve",
                                                "shutil",
                                                "signal",
                                                "site",
                                                "smtplib",
                                                "socket",
                                                "socketserver",
                                                "ssl",
                                                "subprocess",
                                                "sys",
                                                "telnetlib",
                                                "test",
                                                "threading",
                                                "timeit",
                                                "trace",
                                                "unittest",
                                                "urllib",
                                                "urllib2",
                                                "venv",
                                                "webbrowser",
                                                "xmlrpc",
                                                "zipimport"};

/// Single names of otherwise harmless modules; a name that ends in a dot or underscore means
/// all names with that prefix.
constexpr GlobalName kRefusedNames[] = {{"io", "open"},
                                        {"io", "open_code"},
                                        {"io", "FileIO"},
                                        {"codecs", "open"},
                                        {"operator", "attrgetter"},
                                        {"operator", "methodcaller"},
                                        {"types", "CodeType"},
                                        {"types", "FunctionType"},
                                        {"types", "ModuleType"},
                                        {"torch", "load"},
                                        {"torch", "hub."},
                                        {"torch.hub", ""},
                                        {"torch.serialization", "load"},
                                        {"torch.jit", "load"},
                                        {"torch.utils.cpp_extension", ""},
                                        {"torch.utils.collect_env", ""},
                                        {"torch.distributed.rpc", ""},
                                        {"numpy", "load"},
                                        {"numpy", "fromfile"},
                                        {"numpy.f2py", ""},
                                        {"numpy.testing._private.utils", ""},
                                        {"numpy.distutils", ""},
                                        {"pandas", "read_pickle"},
                                        {"pandas.io.pickle", ""},
                                        {"sympy.utilities", ""},
                                        {"tempfile", ""}};

/// Python's own functions and classes that only create data.
constexpr std::string_view kHarmlessBuiltins[] = {
    "Ellipsis", "NotImplemented", "bool",      "bytearray", "bytes", "complex",
    "dict",     "float",          "frozenset", "getattr",   "int",   "list",
    "long",     "object",         "range",     "set",       "slice", "str",
    "tuple",    "type",           "unicode",   "xrange"};

bool is_identifier_path(std::string_view text) {
  bool starts = true;  // a component starts
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '.') {
      if (starts) return false;
      starts = true;
      continue;
    }
    const bool letter = std::isalpha(code) != 0 || c == '_' || code >= 0x80 || (c == '<' || c == '>');
    if (!letter && (starts || std::isdigit(code) == 0)) return false;
    starts = false;
  }
  return !starts;
}

bool is_inside(std::string_view module, std::string_view parent) {
  return module.starts_with(parent) && (module.size() == parent.size() || module[parent.size()] == '.');
}

}  // namespace

Known find_known(std::string_view module, std::string_view name) {
  for (const KnownGlobal& known : kGlobals) {
    if (known.module == module && known.name == name) return {.global = known.global};
  }
  if (module != "torch" && module != "torch.storage") return {};
  for (const StorageType& type : kStorageTypes) {
    if (type.name == name) return {.global = Global::storage_type, .storage_type = &type};
  }
  for (const StorageType& type : kDtypes) {
    if (type.name == name) return {.global = Global::dtype, .storage_type = &type};
  }
  return {};
}

bool is_refused(std::string_view module, std::string_view name) {
  if (!is_identifier_path(module) || !is_identifier_path(name)) return true;
  for (const std::string_view refused : kRefusedModules) {
    if (is_inside(module, refused)) return true;
  }
  for (const GlobalName& refused : kRefusedNames) {
    const bool all = refused.name.empty() || refused.name.ends_with('.');
    if (all ? is_inside(module, refused.module) && name.starts_with(refused.name)
            : module == refused.module && name == refused.name)
      return true;
  }
  if (module == "builtins" || module == "__builtin__") {
    const bool is_exception =
        name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Warning");
    return !is_exception && std::ranges::find(kHarmlessBuiltins, name) == std::end(kHarmlessBuiltins);
  }
  // a method of a supported class would change the data read
  const std::string_view owner = name.substr(0, name.find('.'));
  if (owner != name && find_known(module, owner).global != Global::other) return true;
  return module == "torch" && name.ends_with("Storage") && find_known(module, name).global == Global::other;
}

}  // namespace vit::internal::pickle
