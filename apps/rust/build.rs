//! Links the library: the file that VIT_LIBRARY names, or what pkg-config says. Build scripts of crates that depend on this one
//! find its folder in DEP_VIT_LIBDIR, if it is none of the system's.
use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=VIT_LIBRARY");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    if let Some(library) = env::var_os("VIT_LIBRARY") {
        let path = Path::new(&library);
        let folder = path.parent().expect("VIT_LIBRARY is a file in a folder").display();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("VIT_LIBRARY is UTF-8");
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-lib=dylib={}", stem.trim_start_matches("lib"));
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}"); // of the examples and tests of this crate only
        println!("cargo:libdir={folder}");
        return;
    }
    let found = Command::new("pkg-config").args(["--libs", "vit"]).output();
    let flags = match found {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).expect("pkg-config writes UTF-8"),
        _ => panic!("vit is not found: install libvit-dev, or set PKG_CONFIG_PATH or VIT_LIBRARY=/path/to/libvit.so"),
    };
    for flag in flags.split_whitespace() {
        if let Some(folder) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
            println!("cargo:libdir={folder}");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        } else {
            println!("cargo:rustc-link-arg={flag}");
        }
    }
}
