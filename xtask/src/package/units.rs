//! The systemd units: their syntax, and how much of the host they expose.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::output;

/// The largest exposure that `systemd-analyze security` may find, from 0 to 10. Shaping needs packet sockets, AF_XDP and
/// real-time scheduling.
const UNITS: &[(&str, f64)] = &[
    ("headend.service", 2.2),
    ("headend-web.service", 2.0),
    ("headend-qos@.service", 2.3),
    // It makes a network namespace and loads eBPF programs.
    ("headend-qos-apply@.service", 2.4),
];

/// Checks the exposure of each unit.
pub(super) fn exposure(packaging: &Path) -> Result<String, Vec<String>> {
    let mut found = Vec::new();
    let mut faults = Vec::new();
    for (unit, most) in UNITS {
        let mut analyze = Command::new("systemd-analyze");
        analyze
            .args(["security", "--offline=true", "--no-pager"])
            .arg(packaging.join("systemd").join(unit));
        match output(&mut analyze).and_then(|text| level(&text)) {
            Ok(level) if level <= *most => found.push(format!("{unit} {level:.1}")),
            Ok(level) => faults.push(format!(
                "{unit}: exposure {level:.1}, {most:.1} is the most"
            )),
            Err(fault) => faults.push(fault),
        }
    }
    match faults.is_empty() {
        true => Ok(found.join(", ")),
        false => Err(faults),
    }
}

/// Reads `→ Overall exposure level for headend.service: 2.0 OK`.
fn level(text: &str) -> Result<f64, String> {
    let line = text
        .lines()
        .rev()
        .find(|line| line.contains("Overall exposure level"));
    let number = line.and_then(|line| line.rsplit_once(": ")?.1.split(' ').next()?.parse().ok());
    number.ok_or_else(|| format!("systemd-analyze prints no exposure: {text}"))
}

/// Lets systemd read the units, with a program in place of the one that is not installed here.
pub(super) fn syntax(packaging: &Path) -> Result<String, Vec<String>> {
    let check = || -> Result<String, String> {
        let directory = std::env::temp_dir().join(format!("headend-units-{}", std::process::id()));
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let mut names = Vec::new();
        let units = fs::read_dir(packaging.join("systemd")).map_err(|error| error.to_string())?;
        for unit in units.flatten() {
            let name = unit.file_name().to_string_lossy().into_owned();
            if name.ends_with(".conf") {
                continue;
            }
            let text = fs::read_to_string(unit.path()).map_err(|error| error.to_string())?;
            let text = text.replace("/usr/bin/headend", "/bin/true");
            fs::write(directory.join(&name), text).map_err(|error| error.to_string())?;
            names.push(name);
        }
        names.sort();
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(["verify", "--man=no", "--recursive-errors=no"]);
        let verified = analyze.args(&names).current_dir(&directory).output();
        let _ = fs::remove_dir_all(&directory);
        let verified = verified.map_err(|error| format!("systemd-analyze: {error}"))?;
        let errors = String::from_utf8_lossy(&verified.stderr);
        match verified.status.success() && errors.is_empty() {
            true => Ok(names.join(", ")),
            false => Err(errors.into_owned()),
        }
    };
    check().map_err(super::one)
}
