// SPDX-License-Identifier: GPL-2.0-or-later
//! The order of the crate's layers: a file uses its own layer and those before it, and no file uses
//! itself by way of others. Read off the paths that files name (`crate::...`), those of unit tests
//! included.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each uses those before it. The command line and the Python module are crates of their own, which
/// see what `lib.rs` shows.
const LAYERS: [&str; 7] = ["core", "packet", "queue", "net", "host", "apps", "sim"];

/// Of files, by their path in `src` without its ending, the text.
type Files = BTreeMap<String, String>;

/// All files but `lib.rs`, which shows what is public, and `main.rs`.
fn files() -> Files {
    fn read(folder: &Path, root: &Path, into: &mut Files) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, root, into);
            } else if folder != root {
                let name = path.strip_prefix(root).unwrap().with_extension("");
                into.insert(name.to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Files::new();
    read(&root, &root, &mut files);
    files
}

/// The names in `a::b::C` from its beginning on.
fn names(path: &str) -> Vec<&str> {
    let end =
        path.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(path.len());
    path[..end].split("::").collect()
}

/// Modules that a file names, with the numbers of the lines.
fn named(text: &str) -> Vec<(usize, Vec<&str>)> {
    let code = (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.flat_map(|(number, line)| {
        line.match_indices("crate::")
            .map(move |(at, what)| (number, names(&line[at + what.len()..])))
    })
    .collect()
}

fn layer(name: &str) -> usize {
    let of = name.split('/').next().unwrap();
    LAYERS.iter().position(|layer| *layer == of).unwrap_or_else(|| panic!("{name} is in no layer"))
}

/// Paths that lead to a later layer.
fn upward(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in files {
        for (number, path) in named(text) {
            if layer(path[0]) > layer(file) {
                found.push(format!("{file}, line {number}: {}", path.join("::")));
            }
        }
    }
    found
}

/// The file in which a module is: `host/flow` is one with the files of its folder, a layer's `mod`
/// one of its own.
fn module(path: &[&str]) -> String {
    let inner = path
        .get(1)
        .filter(|name| name.chars().next().is_some_and(char::is_lowercase))
        .unwrap_or(&"mod");
    format!("{}/{inner}", path[0])
}

/// Modules that use themselves by way of others.
fn circles(files: &Files) -> BTreeSet<String> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in files {
        let from = module(&file.split('/').collect::<Vec<_>>());
        let to = named(text).into_iter().map(|(_, path)| module(&path)).filter(|to| *to != from);
        uses.entry(from.clone()).or_default().extend(to);
    }
    // Who uses nothing that is left is in no circle.
    while let Some(free) = uses
        .iter()
        .find(|(_, of)| of.iter().all(|to| !uses.contains_key(to)))
        .map(|(name, _)| name.clone())
    {
        uses.remove(&free);
    }
    uses.into_keys().collect()
}

/// `impl`s of types that another file of another layer declares: the last layer gives published
/// values to types below it.
fn scattered(files: &Files) -> Vec<String> {
    let mut home = BTreeMap::new();
    for (file, text) in files {
        for line in text.lines() {
            let declared = ["pub struct ", "pub enum ", "pub(crate) struct ", "pub(crate) enum "];
            if let Some(rest) = declared.iter().find_map(|words| line.strip_prefix(words)) {
                home.insert(names(rest)[0].to_owned(), layer(file));
            }
        }
    }
    let mut found = Vec::new();
    for (file, text) in files.iter().filter(|(file, _)| layer(file) + 1 < LAYERS.len()) {
        for of in text
            .lines()
            .filter_map(|line| line.strip_prefix("impl "))
            .filter(|rest| !rest.contains(" for "))
        {
            let own = ["struct", "enum"]
                .iter()
                .any(|what| text.contains(&format!("\n{what} {} ", names(of)[0])));
            if !own && home.get(names(of)[0]).is_some_and(|home| *home != layer(file)) {
                found.push(format!("{file}: impl {of}"));
            }
        }
    }
    found
}

fn with(mut files: Files, file: &str, line: &str) -> Files {
    let text = files.get_mut(file).unwrap_or_else(|| panic!("there is no {file}"));
    text.push_str(line);
    files
}

#[test]
fn no_layer_uses_a_later_one() {
    let files = files();
    let seen: BTreeSet<&str> = files.keys().map(|file| LAYERS[layer(file)]).collect();
    assert_eq!(seen.len(), LAYERS.len(), "a layer has no file: {seen:?}");
    assert!(
        files.values().map(|text| named(text).len()).sum::<usize>() > 300,
        "paths are not found"
    );
    assert_eq!(upward(&files), Vec::<String>::new());
}

#[test]
fn no_file_uses_itself_by_way_of_others() {
    assert_eq!(circles(&files()), BTreeSet::new());
}

#[test]
fn what_a_type_does_stands_in_its_layer() {
    assert_eq!(scattered(&files()), Vec::<String>::new());
}

#[test]
fn planted_edges_are_found() {
    let back = with(files(), "queue/fifo", "\nuse crate::sim::engine::Simulation;\n");
    assert_eq!(upward(&back).len(), 1, "{:?}", upward(&back));
    assert!(upward(&back)[0].ends_with("sim::engine::Simulation"));
    let inner = with(files(), "core/time", "    let _ = crate::core::wheel::Wheel::new();\n");
    assert!(circles(&inner)
        .is_superset(&BTreeSet::from(["core/time".to_owned(), "core/wheel".to_owned()])));
    let told = with(files(), "core/time", "// crate::sim::engine is told of in a comment.\n");
    assert_eq!(upward(&told), Vec::<String>::new());
    let away = with(files(), "host/hosts", "\nimpl Network {\n}\n");
    assert_eq!(scattered(&away), ["host/hosts: impl Network {"]);
}

/// Who decides when packets leave is said by laws and asked in one place: what senders with windows
/// do (`sending`, `reply`, `receiver`, `flow`) knows nothing of receivers that grant.
#[test]
fn transports_meet_at_one_seam() {
    let files = files();
    let naming: Vec<&str> = files
        .iter()
        .filter(|(name, text)| !name.starts_with("host/congestion/") && text.contains("Protocol::"))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(naming, ["host/protocol"]);
    for name in [
        "host/flow_events",
        "host/acks",
        "host/receiver",
        "host/flow",
        "host/flow/recovery",
        "host/sequence_set",
    ] {
        assert!(!files[name].contains("Homa"), "{name} knows Homa");
    }
}
