//! Dependencies: their licences, their sources, and banned packages, according to the lists of `deny.toml`.
//!
//! That file belongs to cargo-deny, which also runs if it is installed (`steps.rs`). Building cargo-deny takes
//! longer than all tests here, and no current package exists: Debian has none, and the one on PyPI (0.14.2,
//! 2023) does not know the licence Unicode-3.0. A check that runs only on machines with a certain tool is
//! easily missed, so this small reader of the same lists runs everywhere. It needs no network.
//!
//! Left out: the rest of `deny.toml`, such as duplicate versions and features. Advisories need the network:
//! `cargo deny check advisories` reads them.

use crate::cargo::{Metadata, Other};
use crate::spdx;
use std::path::Path;
use toml::{Table, Value};

/// cargo-deny's configuration.
const LISTS: &str = "deny.toml";

/// The permitted licences and sources, and the bans.
struct Lists {
    licences: Vec<String>,
    registries: Vec<String>,
    banned: Vec<(String, String)>,
}

/// Checks every package in the build that is not ours.
///
/// # Errors
/// One line for each crate with a forbidden licence or source, and each banned one.
pub(crate) fn check(metadata: &Metadata) -> Result<String, Vec<String>> {
    let lists = read(&metadata.root).map_err(|fault| vec![format!("{LISTS}: {fault}")])?;
    let packages = metadata.others();
    let faults: Vec<String> = packages
        .iter()
        .flat_map(|package| lists.faults_of(package))
        .collect();
    if faults.is_empty() {
        Ok(format!("{} dependencies", packages.len()))
    } else {
        Err(faults)
    }
}

fn read(root: &Path) -> Result<Lists, String> {
    let text = std::fs::read_to_string(root.join(LISTS)).map_err(|error| error.to_string())?;
    parse(&text)
}

fn parse(text: &str) -> Result<Lists, String> {
    let table: Table = text.parse().map_err(|error| format!("{error}"))?;
    let list = |section: &str, key: &str| -> Result<Vec<Value>, String> {
        let found = table.get(section).and_then(|section| section.get(key));
        let list = found.and_then(Value::as_array).cloned();
        list.ok_or_else(|| format!("no list {section}.{key}"))
    };
    let texts = |section: &str, key: &str| -> Result<Vec<String>, String> {
        let fault = || format!("{section}.{key} has a value that is not a string");
        list(section, key)?
            .iter()
            .map(|value| value.as_str().map(str::to_owned).ok_or_else(fault))
            .collect()
    };
    let banned = list("bans", "deny")?;
    let banned = banned.iter().map(|ban| {
        let text = |key: &str| ban.get(key)?.as_str().map(str::to_owned);
        let fault = || "bans.deny has an entry without crate and reason".to_owned();
        text("crate").zip(text("reason")).ok_or_else(fault)
    });
    Ok(Lists {
        licences: texts("licenses", "allow")?,
        registries: texts("sources", "allow-registry")?,
        banned: banned.collect::<Result<_, _>>()?,
    })
}

impl Lists {
    fn faults_of(&self, package: &Other<'_>) -> Vec<String> {
        let Other {
            name,
            version,
            licence,
            source,
        } = *package;
        let mut faults = Vec::new();
        let licences: Vec<&str> = self.licences.iter().map(String::as_str).collect();
        if let Some(refused) = spdx::refusal(licence, &licences) {
            faults.push(format!(
                "{name} {version} is under {licence:?}; not in {LISTS}: {refused}"
            ));
        }
        let registry = source.strip_prefix("registry+");
        if !registry.is_some_and(|registry| self.registries.iter().any(|known| known == registry)) {
            faults.push(format!(
                "{name} {version} is from {source:?}, which {LISTS} does not allow"
            ));
        }
        let ban = self.banned.iter().find(|(banned, _)| banned == name);
        faults.extend(ban.map(|(_, why)| format!("{name} {version} is banned: {why}")));
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: &str = "[licenses]\nallow = [\"MIT\"]\n[sources]\nallow-registry = [\"https://a\"]\n\
                         [bans]\ndeny = [{ crate = \"b\", reason = \"r\" }]\n";

    fn faults(name: &str, licence: &str, source: &str) -> Vec<String> {
        parse(LISTS).unwrap().faults_of(&Other {
            name,
            version: "1.0.0",
            licence,
            source,
        })
    }

    #[test]
    fn licence_source_and_name_are_held_to_the_lists() {
        assert_eq!(faults("a", "MIT OR ISC", "registry+https://a"), [""; 0]);
        assert_eq!(faults("a", "ISC", "registry+https://a").len(), 1);
        assert_eq!(faults("a", "MIT", "registry+https://b").len(), 1);
        assert_eq!(faults("a", "MIT", "git+https://a").len(), 1);
        assert_eq!(faults("a", "MIT", "").len(), 1);
        assert_eq!(faults("b", "MIT", "registry+https://a").len(), 1);
    }

    #[test]
    fn a_file_without_the_lists_is_refused() {
        for bad in ["", "[licenses]\nallow = [1]\n", "["] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_lists_of_this_tree_are_read() {
        let metadata = Metadata::read().unwrap();
        assert!(!read(&metadata.root).unwrap().banned.is_empty());
    }
}
