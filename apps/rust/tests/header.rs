//! sys.rs declares what vit/c.h does: the same functions with the same parameters, structs with the same members, constants with
//! the same values, in the same order.
use std::fs;

fn read(path: &str) -> String {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The header without comments, preprocessor lines and repeated blanks.
fn header() -> String {
    let mut text = read("../../vit/c.h");
    while let Some(start) = text.find("/*") {
        let end = start + text[start..].find("*/").expect("comments end") + 2;
        text.replace_range(start..end, " ");
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The last word of a declaration, without the size of an array.
fn name_of(declaration: &str) -> &str {
    let end = declaration.find('[').unwrap_or(declaration.len());
    declaration[..end].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
}

fn between<'a>(text: &'a str, start: &str, end: char) -> Vec<&'a str> {
    text.match_indices(start).map(|(at, _)| &text[at + start.len()..]).map(|rest| &rest[..rest.find(end).unwrap_or(0)]).collect()
}

#[test]
fn functions_and_their_parameters() {
    let header = header();
    let of_c: Vec<String> = between(&header, "VIT_API ", ';')
        .iter()
        .map(|declaration| {
            let (head, parameters) = declaration.split_once('(').expect("a function");
            let parameters = parameters.trim_end_matches(')');
            let names: Vec<&str> = parameters.split(',').map(name_of).filter(|name| *name != "void").collect();
            format!("{}({})", name_of(head), names.join(", "))
        })
        .collect();
    let rust = read("src/sys.rs").split_whitespace().collect::<Vec<_>>().join(" ");
    let of_rust: Vec<String> = between(&rust, "pub fn ", ';')
        .iter()
        .map(|declaration| {
            let (name, rest) = declaration.split_once('(').expect("a function");
            let parameters = &rest[..rest.find(')').expect("its end")];
            let names: Vec<&str> =
                parameters.split(',').filter_map(|each| each.split_once(':')).map(|each| each.0.trim()).collect();
            format!("{name}({})", names.join(", "))
        })
        .collect();
    assert!(of_c.len() > 90);
    assert_eq!(of_c, of_rust);
}

#[test]
fn structs_and_their_members() {
    let header = header();
    let mut count = 0;
    let rust = read("src/sys.rs");
    for body in between(&header, "typedef struct ", '}') {
        let (name, members) = match body.split_once(" { ") {
            Some((name, members)) => (name.trim(), members),
            None => continue,
        };
        if name.contains(';') || !members.contains(';') {
            continue; // an opaque one
        }
        let of_c: Vec<&str> = members.split(';').map(|each| name_of(each.trim())).filter(|each| !each.is_empty()).collect();
        let camel: String = name.split('_').skip(1).map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        let own = between(&rust, &format!("pub struct {camel} {{"), '}');
        let of_rust: Vec<&str> =
            own[0].lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':')).map(|each| each.0).collect();
        assert_eq!(of_c, of_rust, "{name}");
        count += 1;
    }
    assert!(count > 15);
}

#[test]
fn constants_and_their_values() {
    let header = header();
    let rust = read("src/sys.rs");
    let mut count = 0;
    for body in between(&header, "enum {", '}') {
        for each in body.split(',').filter(|each| each.contains('=')) {
            let (name, value) = each.split_once('=').expect("a value");
            let (name, value) = (name.trim(), value.trim());
            let found = rust.lines().find(|line| line.starts_with(&format!("pub const {name}:")));
            assert!(found.map_or(false, |line| line.ends_with(&format!("= {value};"))), "{name} = {value}, found {found:?}");
            count += 1;
        }
    }
    assert!(count > 60);
}
