//! Checks dependencies within a crate: imports between modules must be allowed, and imports between
//! files must not form a cycle. A parent and its child may import each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::allowed_imports::MODULES;
use crate::workspace::Workspace;

/// A module's path within its crate; empty for `lib.rs` and `main.rs`.
pub(crate) type ModulePath = Vec<String>;

/// The imports between a crate's files, by module.
type Imports = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// Returns the breaches in all crates of the workspace: import cycles, and imports that `MODULES`
/// doesn't allow.
pub(crate) fn breaches(workspace: &Workspace) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    let folder = workspace.root.join("crates");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let source = entry.path().join("src");
        if !source.is_dir() {
            continue;
        }
        let imports = imports(&by_module(source_files(&source)?));
        breaches.extend(cycle_messages(&name, &imports));
        if let Some((_, rows)) = MODULES.iter().find(|(known, _)| *known == name) {
            breaches.extend(directions(&name, rows, &imports));
        }
    }
    Ok(breaches)
}

fn cycle_messages(name: &str, imports: &Imports) -> Vec<String> {
    let cycles = smallest_cycles(imports).into_iter();
    cycles
        .map(|cycle| {
            let mut files: Vec<String> = cycle.iter().map(|module| shown(module)).collect();
            files.push(files[0].clone());
            format!("{name}: an import cycle: {}", files.join(" -> "))
        })
        .collect()
}

/// Returns the shortest cycle of each strongly connected component of the import graph. Edges
/// between a parent and its child don't count, because these may import each other.
fn smallest_cycles(imports: &Imports) -> Vec<Vec<&ModulePath>> {
    let mut cycles = Vec::new();
    let mut in_cycles: BTreeSet<&ModulePath> = BTreeSet::new();
    for module in imports.keys() {
        if in_cycles.contains(module) {
            continue;
        }
        if let Some(cycle) = cycle_through(module, imports) {
            let reached = reachable(module, imports);
            let is_back = |other: &&ModulePath| reachable(other, imports).contains(module);
            in_cycles.extend(reached.into_iter().filter(is_back));
            cycles.push(cycle);
        }
    }
    cycles
}

fn edges<'a>(module: &'a ModulePath, imports: &'a Imports) -> impl Iterator<Item = &'a ModulePath> {
    let imported = imports.get(module).into_iter().flatten();
    imported.filter(move |target| !is_parent(module, target) && !is_parent(target, module))
}

fn reachable<'a>(from: &'a ModulePath, imports: &'a Imports) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(module) = waiting.pop() {
        waiting.extend(edges(module, imports).filter(|other| reached.insert(*other)));
    }
    reached
}

/// Returns a shortest import path from a file back to itself.
fn cycle_through<'a>(start: &'a ModulePath, imports: &'a Imports) -> Option<Vec<&'a ModulePath>> {
    let mut paths = VecDeque::from([vec![start]]);
    let mut reached = BTreeSet::new();
    while let Some(path) = paths.pop_front() {
        for other in edges(path[path.len() - 1], imports) {
            if other == start {
                return Some(path);
            }
            if reached.insert(other) {
                let mut longer = path.clone();
                longer.push(other);
                paths.push_back(longer);
            }
        }
    }
    None
}

fn is_parent(parent: &[String], child: &[String]) -> bool {
    child.split_last().is_some_and(|(_, above)| above == parent)
}

fn shown(module: &[String]) -> String {
    match module.is_empty() {
        true => "its root".to_owned(),
        false => module.join("::"),
    }
}

/// Returns a message for each import between top-level modules that the table does not allow. A row
/// may name only modules in rows above it, so the table itself has no cycle.
fn directions(name: &str, rows: &[(&str, &[&str])], imports: &Imports) -> Vec<String> {
    let mut breaches = Vec::new();
    for (at, (module, allowed)) in rows.iter().enumerate() {
        let above = |allowed: &&&str| !rows[..at].iter().any(|(known, _)| known == *allowed);
        for stranger in allowed.iter().filter(above) {
            breaches.push(format!("{name}: {stranger} is not above {module}"));
        }
    }
    for (module, others) in imports {
        let Some(top) = module.first() else {
            continue;
        };
        let Some((_, allowed)) = rows.iter().find(|(known, _)| known == top) else {
            breaches.push(format!(
                "{name}: {top} has no row in MODULES (crates/xtask/src/allowed_imports.rs)"
            ));
            continue;
        };
        let tops = others.iter().filter_map(|other| other.first());
        let tops: BTreeSet<&String> = tops.filter(|other| *other != top).collect();
        for other in tops {
            if !allowed.contains(&other.as_str()) {
                let module = shown(module);
                breaches.push(format!("{name}: {module} must not import {other}"));
            }
        }
    }
    breaches
}

pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) module: ModulePath,
    pub(crate) text: String,
}

/// Reads the source files of a crate, sorted by path.
pub(crate) fn source_files(source: &Path) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    let mut folders = vec![(source.to_path_buf(), ModulePath::new())];
    while let Some((folder, above)) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let stem = path.file_stem().unwrap_or_default();
            let stem = stem.to_string_lossy().into_owned();
            let mut module = above.clone();
            if path.is_dir() {
                module.push(stem);
                folders.push((path, module));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                if !matches!(stem.as_str(), "lib" | "main" | "mod") {
                    module.push(stem);
                }
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                files.push(SourceFile { path, module, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Returns the source of each module of a crate.
fn by_module(files: Vec<SourceFile>) -> BTreeMap<ModulePath, String> {
    let mut modules = BTreeMap::new();
    for file in files {
        modules
            .entry(file.module)
            .or_insert_with(String::new)
            .push_str(&file.text);
    }
    modules
}

/// Modules that are compiled only for tests and have their own file.
pub(crate) struct TestOnlyModules(BTreeSet<ModulePath>);

impl TestOnlyModules {
    pub(crate) fn of<'a>(
        files: impl IntoIterator<Item = (&'a ModulePath, &'a str)>,
    ) -> TestOnlyModules {
        let mut modules = BTreeSet::new();
        for (module, text) in files {
            for name in without_tests(text).1 {
                let mut module = module.clone();
                module.push(name);
                modules.insert(module);
            }
        }
        TestOnlyModules(modules)
    }

    /// Returns whether a module or one of its parents is compiled only for tests.
    pub(crate) fn contains(&self, module: &[String]) -> bool {
        (1..=module.len()).any(|length| self.0.contains(&module[..length]))
    }
}

fn imports(files: &BTreeMap<ModulePath, String>) -> Imports {
    let texts = files.iter().map(|(module, text)| (module, text.as_str()));
    let for_tests = TestOnlyModules::of(texts);
    let sources = files
        .iter()
        .filter(|(module, _)| !for_tests.contains(module))
        .map(|(module, text)| (module.clone(), without_tests(text).0));
    let sources: BTreeMap<_, _> = sources.collect();
    let named = sources.iter().map(|(module, source)| {
        let named = paths(source).into_iter();
        let named = named.filter_map(|path| resolved(module, &path, &sources));
        let named = named.filter(|named| named != module).collect();
        (module.clone(), named)
    });
    named.collect()
}

/// Returns the source without comments and test-only code, and the names of its submodules that are
/// compiled only for tests.
fn without_tests(text: &str) -> (String, Vec<String>) {
    let mut source = String::new();
    let mut tests = Vec::new();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let next = lines.peek().copied().unwrap_or_default();
            let name = next.trim_start_matches("pub(crate) ");
            match name.strip_prefix("mod ") {
                // The tests in a file are at its end, so skip the rest.
                Some(name) if name.ends_with('{') => break,
                Some(name) => tests.push(name.trim_end_matches(';').to_owned()),
                None => {}
            }
            lines.next();
            continue;
        }
        let code = line.split("//").next().unwrap_or_default();
        source.push_str(code);
        source.push(' ');
    }
    (source, tests)
}

/// Returns the paths in a source that begin with `crate`, `super` or `self`, with `use` trees
/// expanded.
fn paths(source: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in source.match_indices(start) {
            let before = source[..at].chars().next_back();
            // Skip a match in the middle of a path or of a name.
            if before
                .is_some_and(|before| before == ':' || before == '_' || before.is_alphanumeric())
            {
                continue;
            }
            tree(&source[at..], &mut Vec::new(), &mut paths);
        }
    }
    paths
}

/// Expands the `use` tree or the path at the start of `source`, and adds the results to `paths`.
/// Returns the length of the tree in bytes.
fn tree(source: &str, above: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> usize {
    let depth = above.len();
    let mut at = 0;
    loop {
        let rest = &source[at..];
        let name = rest.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
        let name = name.unwrap_or(rest.len());
        if name > 0 {
            above.push(rest[..name].to_owned());
            at += name;
        }
        if source[at..].starts_with("::") {
            at += 2;
            if source[at..].starts_with('{') {
                at += 1 + branches(&source[at + 1..], above, paths);
                break;
            }
            if name > 0 {
                continue;
            }
        }
        paths.push(above.clone());
        break;
    }
    above.truncate(depth);
    at
}

/// Expands the branches of a `use` tree, which end with a closing brace. Returns their length in
/// bytes, including the brace.
fn branches(source: &str, above: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> usize {
    let mut at = 0;
    while let Some(letter) = source[at..].chars().next() {
        match letter {
            '}' => return at + 1,
            letter if letter == '_' || letter.is_alphanumeric() => {
                at += tree(&source[at..], above, paths);
            }
            letter => at += letter.len_utf8(),
        }
    }
    at
}

/// Returns the module that `path` names in the module `from`. If `path` names another item, returns
/// the item's module.
fn resolved(
    from: &[String],
    path: &[String],
    modules: &BTreeMap<ModulePath, String>,
) -> Option<ModulePath> {
    let mut at = from.to_vec();
    let mut names = path.iter().peekable();
    if names.next_if(|name| *name == "crate").is_some() {
        at.clear();
    }
    names.next_if(|name| *name == "self");
    while names.next_if(|name| *name == "super").is_some() {
        at.pop()?;
    }
    for name in names {
        at.push(name.clone());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> Imports {
        let module = |path: &str| {
            let names = path.split('/').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect::<ModulePath>()
        };
        let files = files.iter();
        let files = files.map(|(path, text)| (module(path), (*text).to_owned()));
        imports(&files.collect())
    }

    #[test]
    fn files_that_import_each_other_are_found() {
        let cycle_source =
            "use crate::{\n    // why\n    one::One,\n    third::{self, deep::{A, B}},\n};";
        for (one, is_found) in [
            ("use crate::other::Other;", true),
            ("use super::other::{Other, More};", true),
            ("fn f() { crate::other::f() }", true),
            ("// use crate::other::Other;", false),
            (
                "#[cfg(test)]\nmod tests {\n    use crate::other::Other;\n}",
                false,
            ),
            ("use crate::third::deep::A;", false),
        ] {
            let files = [
                ("", "mod one;"),
                ("one", one),
                ("other", cycle_source),
                ("third", ""),
                ("third/deep", ""),
            ];
            let imports = crate_of(&files);
            let messages = cycle_messages("c", &imports);
            assert_eq!(messages.len(), usize::from(is_found), "{one}: {messages:?}");
        }
    }

    #[test]
    fn a_cycle_of_several_files_is_named_once_by_its_shortest_path() {
        let files = [
            ("a", "use crate::b::B; use crate::d::D;"),
            ("b", "use crate::c::C;"),
            ("c", "use crate::a::A; use crate::d::D;"),
            ("d", "use crate::e::E;"),
            ("e", "use crate::a::A;"),
            ("f", "use crate::a::A;"),
        ];
        let messages = cycle_messages("x", &crate_of(&files));
        assert_eq!(messages, ["x: an import cycle: a -> b -> c -> a"]);
    }

    #[test]
    fn a_parent_and_its_child_may_import_each_other() {
        let files = [
            ("a", "use self::b::B; use crate::a::c::C;"),
            ("a/b", "use super::A; use super::c::C;"),
            ("a/c", "use crate::a::A;"),
        ];
        assert!(cycle_messages("c", &crate_of(&files)).is_empty());
        let files = [
            ("a", ""),
            ("a/b", "use super::c::C;"),
            ("a/c", "use crate::a::b::B;"),
        ];
        assert_eq!(cycle_messages("c", &crate_of(&files)).len(), 1);
    }

    #[test]
    fn a_module_imports_only_the_modules_in_its_row() {
        let files = [
            ("", "mod low;\nmod high;\n#[cfg(test)]\nmod drawn;"),
            ("low", "use crate::high::X;"),
            ("high", ""),
            ("high/deep", "use crate::low::Y;"),
            ("drawn", "use crate::high::X;"),
        ];
        let rows: [(&str, &[&str]); 2] = [("low", &[]), ("high", &["low"])];
        let breaches = directions("c", &rows, &crate_of(&files));
        assert_eq!(breaches, ["c: low must not import high"]);
        let rows: [(&str, &[&str]); 2] = [("low", &["high"]), ("high", &["low"])];
        let breaches = directions("c", &rows, &crate_of(&files));
        assert_eq!(breaches, ["c: high is not above low"]);
        let breaches = directions("c", &rows[1..], &crate_of(&files));
        assert!(
            breaches
                .iter()
                .any(|breach| breach.contains("low has no row"))
        );
    }
}
