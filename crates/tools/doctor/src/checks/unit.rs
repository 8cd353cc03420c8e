//! The systemd unit that starts the daemon: whether its restrictions leave what the configuration needs.

use crate::finding::Findings;
use crate::host::{Host, Unit};
use crate::wants::{FileUse, Wants};

pub(super) fn unit(wants: &Wants, host: &Host, findings: &mut Findings) {
    let Some(unit) = &host.unit else {
        return;
    };
    let name = unit.path.file_name().unwrap_or_default().to_string_lossy();
    let mut is_good = true;
    let mut fault = |text: String, lines: &[String]| {
        is_good = false;
        findings.fault(text, drop_in(unit, lines));
    };
    if wants.tun.is_some() && hides_tun(unit) {
        fault(
            format!(
                "{name} hides /dev/net/tun (PrivateDevices or DevicePolicy), which [tun] needs."
            ),
            &[
                "PrivateDevices=no".into(),
                "DeviceAllow=/dev/net/tun rw".into(),
            ],
        );
    }
    if unit.is_on("PrivateNetwork") {
        fault(
            format!("{name} has PrivateNetwork=yes, so the daemon reaches no network."),
            &["PrivateNetwork=no".into()],
        );
    }
    let families = unit.get("RestrictAddressFamilies");
    if let Some(families) = families {
        let is_deny = families.starts_with('~');
        let wanted = ["AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"];
        let packets = (!wants.ethernet.is_empty()).then_some("AF_PACKET");
        let listed = |family: &str| {
            let mut words = families.trim_start_matches('~').split_whitespace();
            words.any(|word| word == family)
        };
        let missing: Vec<&str> = wanted
            .into_iter()
            .chain(packets)
            .filter(|one| listed(one) == is_deny)
            .collect();
        if !missing.is_empty() {
            let missing = missing.join(" ");
            fault(
                format!("RestrictAddressFamilies of {name} forbids {missing}."),
                // A list that names what is forbidden cannot be undone by a longer one.
                &match is_deny {
                    true => vec!["RestrictAddressFamilies=".into()],
                    false => vec![format!("RestrictAddressFamilies={missing}")],
                },
            );
        }
    }
    for path in unwritable(wants, unit) {
        fault(
            format!("ProtectSystem of {name} makes {path} read-only."),
            &[format!("ReadWritePaths={path}")],
        );
    }
    if is_good {
        let path = unit.path.display();
        findings.ok(format!("{path} allows what the configuration needs."));
    }
}

/// The command that adds lines to a unit, for the next start.
pub(super) fn drop_in(unit: &Unit, lines: &[String]) -> String {
    let name = unit.path.file_name().unwrap_or_default().to_string_lossy();
    let directory = format!("/etc/systemd/system/{name}.d");
    let lines = lines.join("\\n");
    format!(
        "mkdir -p {directory} && printf '[Service]\\n{lines}\\n' >> {directory}/doctor.conf && systemctl daemon-reload"
    )
}

fn hides_tun(unit: &Unit) -> bool {
    let allows = unit
        .get("DeviceAllow")
        .is_some_and(|list| list.contains("/dev/net/tun"));
    // PrivateDevices leaves no /dev/net, whatever DeviceAllow says; DevicePolicy=closed only forbids opening it.
    let is_closed = matches!(unit.get("DevicePolicy"), Some("closed" | "strict"));
    unit.is_on("PrivateDevices") || is_closed && !allows
}

/// Directories in which the daemon makes files, and which ProtectSystem makes read-only (systemd.exec(5)).
fn unwritable(wants: &Wants, unit: &Unit) -> Vec<String> {
    let protected: &[&str] = match unit.get("ProtectSystem") {
        Some("strict") => &["/"],
        Some("full") => &["/usr", "/boot", "/efi", "/etc"],
        Some("yes" | "true" | "on" | "1") => &["/usr", "/boot", "/efi"],
        _ => return Vec::new(),
    };
    let given = |key: &str, root: &str| {
        let words = unit.get(key).unwrap_or_default().split_whitespace();
        let full = words.map(|word| match root {
            "" => word.trim_start_matches(['-', '+']).to_owned(),
            root => format!("{root}/{word}"),
        });
        full.collect::<Vec<_>>()
    };
    let mut open = given("ReadWritePaths", "");
    open.extend(given("RuntimeDirectory", "/run"));
    open.extend(given("StateDirectory", "/var/lib"));
    let made = wants
        .files
        .iter()
        .filter(|(_, used)| matches!(used, FileUse::Socket | FileUse::Store));
    let directories = made.filter_map(|(path, _)| path.parent());
    let is_closed = |directory: &&std::path::Path| {
        protected.iter().any(|top| directory.starts_with(top))
            && !open.iter().any(|one| directory.starts_with(one))
    };
    let mut closed: Vec<String> = directories
        .filter(is_closed)
        .map(|path| path.display().to_string())
        .collect();
    closed.dedup();
    closed
}
