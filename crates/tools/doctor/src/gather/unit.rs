//! The systemd unit that starts the daemon: its file and its drop-ins (systemd.unit(5)). Only keys of `[Service]` are
//! kept.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::host::Unit;

/// Where units are looked for, the first place first.
const PLACES: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// The name of the unit.
const NAME: &str = "headend.service";
/// Keys whose lines add to a list; an empty value clears it.
const LISTS: [&str; 8] = [
    "AmbientCapabilities",
    "CapabilityBoundingSet",
    "ReadWritePaths",
    "DeviceAllow",
    "RestrictAddressFamilies",
    "RuntimeDirectory",
    "StateDirectory",
    "ExecStart",
];

/// Reads the unit file at `path`, with its drop-ins.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read(path: &Path) -> Result<Unit> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut unit = Unit {
        path: path.to_owned(),
        ..Unit::default()
    };
    apply(&mut unit, &text);
    let mut drop_ins: Vec<PathBuf> = Vec::new();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.parent().map(Path::to_owned);
    let mut places: Vec<PathBuf> = PLACES.iter().rev().map(PathBuf::from).collect();
    if let Some(beside) = beside.filter(|beside| !places.contains(beside)) {
        places.push(beside);
    }
    for place in places {
        let entries = fs::read_dir(place.join(format!("{name}.d")));
        drop_ins.extend(
            entries
                .into_iter()
                .flatten()
                .flatten()
                .map(|one| one.path()),
        );
    }
    drop_ins.retain(|path| path.extension().is_some_and(|suffix| suffix == "conf"));
    drop_ins.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    for path in drop_ins {
        apply(&mut unit, &fs::read_to_string(path).unwrap_or_default());
    }
    Ok(unit)
}

/// The installed unit, if it starts the configuration `config`.
pub(super) fn find(config: Option<&Path>) -> Option<Unit> {
    let places = PLACES.iter().map(|place| Path::new(place).join(NAME));
    let unit = read(&places.into_iter().find(|path| path.is_file())?).ok()?;
    let config = std::path::absolute(config?).ok()?;
    starts(&unit, &config).then_some(unit)
}

fn starts(unit: &Unit, config: &Path) -> bool {
    let command = unit.get("ExecStart").unwrap_or_default();
    let mut words = command.split_whitespace();
    words.any(|word| Path::new(word.strip_prefix("--config=").unwrap_or(word)) == config)
}

/// Applies the lines of a unit file or a drop-in.
fn apply(unit: &mut Unit, text: &str) {
    let joined = text.replace("\\\n", " ");
    let mut is_service = false;
    for line in joined.lines().map(str::trim) {
        if line.starts_with('[') {
            is_service = line == "[Service]";
        }
        let is_comment = line.starts_with(['#', ';']);
        let Some((key, value)) = line.split_once('=').filter(|_| is_service && !is_comment) else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if value.is_empty() {
            // An empty list means none, which differs from no list.
            unit.keys.insert(key.to_owned(), String::new());
            continue;
        }
        let held = unit.keys.entry(key.to_owned()).or_default();
        if LISTS.contains(&key) && !held.is_empty() {
            held.push(' ');
            held.push_str(value);
        } else {
            value.clone_into(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_ins_replace_values_and_add_to_lists() {
        let mut unit = Unit::default();
        apply(
            &mut unit,
            "[Unit]\nUser=nobody\n[Service]\nUser=headend\nLimitNOFILE=1024\n\
             AmbientCapabilities=CAP_NET_ADMIN\nExecStart=/usr/bin/headend run \\\n --config /etc/h.toml\n",
        );
        apply(
            &mut unit,
            "[Service]\n# LimitNOFILE=1\nLimitNOFILE=65536\nAmbientCapabilities=CAP_NET_RAW\n",
        );
        assert_eq!(unit.get("User"), Some("headend"));
        assert_eq!(unit.get("LimitNOFILE"), Some("65536"));
        assert_eq!(
            unit.get("AmbientCapabilities"),
            Some("CAP_NET_ADMIN CAP_NET_RAW")
        );
        assert!(starts(&unit, Path::new("/etc/h.toml")));
        assert!(!starts(&unit, Path::new("/etc/other.toml")));
        apply(&mut unit, "[Service]\nAmbientCapabilities=\n");
        assert_eq!(unit.get("AmbientCapabilities"), Some(""));
    }
}
