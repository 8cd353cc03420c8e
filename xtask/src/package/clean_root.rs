//! The life of the Debian package in a clean root: an older version is installed and configured, the new one replaces
//! it, what the unit would start is started, and the package is removed and purged.
//!
//! The root is a Debian made by mmdebstrap, kept below `target/package`. Everything runs in a network namespace of its
//! own. There is no systemd: `service` does what the unit says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Place, at, deb, ensure, output, service};

const CONFIGURATION: &str = "etc/headend/headend.toml";

/// The web page of the analyser.
const PAGE: &str = "usr/share/headend/headend-trace.html";

/// What Debian's tools write for themselves.
const BESIDES: &[&str] = &[
    "proc",
    "sys",
    "dev",
    "var/lib/dpkg",
    "var/log",
    "var/cache",
    "etc/.pwd.lock",
];

/// Installs, upgrades, starts, removes and purges.
pub(super) fn test(place: &Place) -> Result<String, String> {
    ensure(output(Command::new("id").arg("-u"))?.trim() == "0", || {
        "a clean root needs root: run this as root".to_owned()
    })?;
    let root = unpack(place, "debian", &[])?;
    let before = state(&root)?;
    let new = deb::file(place);
    let old = older(place, &new)?;
    for (file, name) in [(&old, "old.deb"), (&new, "new.deb")] {
        fs::copy(file, root.join("tmp").join(name)).map_err(at(file))?;
    }
    inside(&root, "dpkg -i /tmp/old.deb")?;
    configure(&root)?;
    inside(
        &root,
        "dpkg -i --force-confdef --force-confold /tmp/new.deb",
    )?;
    let version = inside(&root, "dpkg-query -W -f '${Version}' headend")?;
    let wanted = deb::field(&new, "Version")?;
    ensure(version == wanted, || {
        format!("{version} is installed, not {wanted}")
    })?;
    ensure(root.join(PAGE).exists(), || format!("there is no {PAGE}"))?;
    let kept = fs::read_to_string(root.join(CONFIGURATION)).map_err(at(&root))?;
    ensure(kept.ends_with("# of the operator\n"), || {
        format!("the operator's change is lost: {kept}")
    })?;

    let served = service::test(&root)?;

    inside(&root, "dpkg -r headend")?;
    ensure(root.join(CONFIGURATION).exists(), || {
        "remove deletes the configuration".to_owned()
    })?;
    ensure(!root.join("usr/bin/headend").exists(), || {
        "remove leaves the program".to_owned()
    })?;
    inside(&root, "dpkg -P headend")?;
    inside(&root, "rm /tmp/old.deb /tmp/new.deb")?;
    let after = state(&root)?;
    let left: Vec<_> = after.symmetric_difference(&before).collect();
    ensure(left.is_empty(), || format!("purge leaves {left:?}"))?;
    let _ = fs::remove_dir_all(&root);
    Ok(format!("0.0.9 -> {version}; {served}; purged"))
}

/// Unpacks a fresh copy of a Debian with these packages beside the essential ones. It is fetched once.
pub(super) fn unpack(place: &Place, name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let kept = place.out.join(format!("{name}.tar"));
    if !kept.exists() {
        let part = place.out.join(format!("{name}.part.tar"));
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=minbase"]);
        if !packages.is_empty() {
            command.arg(format!("--include={}", packages.join(",")));
        }
        output(command.arg("bookworm").arg(&part))?;
        fs::rename(&part, &kept).map_err(at(&part))?;
    }
    let root = place.out.join(format!("{name}-root"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).map_err(at(&root))?;
    let mut tar = Command::new("tar");
    tar.arg("-xf")
        .arg(&kept)
        .arg("-C")
        .arg(&root)
        .args(["--exclude=./dev/*", "--numeric-owner"]);
    output(&mut tar)?;
    for (name, minor) in [("null", "3"), ("urandom", "9")] {
        let device = root.join("dev").join(name);
        let mut mknod = Command::new("mknod");
        output(mknod.arg("-m666").arg(device).args(["c", "1", minor]))?;
    }
    Ok(root)
}

/// The new package as version 0.0.9, with another default configuration.
fn older(place: &Place, new: &Path) -> Result<PathBuf, String> {
    let (tree, old) = (place.out.join("older"), place.out.join("older.deb"));
    let _ = fs::remove_dir_all(&tree);
    output(Command::new("dpkg-deb").arg("-R").arg(new).arg(&tree))?;
    let edit = |name: &str, from: &str, to: &str| {
        let file = tree.join(name);
        let text = fs::read_to_string(&file).map_err(at(&file))?;
        fs::write(&file, text.replace(from, to)).map_err(at(&file))
    };
    let version = deb::field(new, "Version")?;
    edit(
        "DEBIAN/control",
        &format!("Version: {version}"),
        "Version: 0.0.9-1",
    )?;
    edit(
        CONFIGURATION,
        "# The configuration of",
        "# The old configuration of",
    )?;
    output(
        Command::new("dpkg-deb")
            .args(["-Zgzip", "-z1", "-b"])
            .arg(&tree)
            .arg(&old),
    )?;
    let _ = fs::remove_dir_all(&tree);
    Ok(old)
}

/// What an operator does: another configuration, and a file beside it.
fn configure(root: &Path) -> Result<(), String> {
    let file = root.join(CONFIGURATION);
    let text = fs::read_to_string(&file).map_err(at(&file))?;
    ensure(text.contains("old configuration"), || {
        format!("the older package has {text}")
    })?;
    fs::write(&file, format!("{text}# of the operator\n")).map_err(at(&file))?;
    let users = root.join("etc/headend/users.toml");
    fs::write(&users, "").map_err(at(&users))
}

/// Runs a script in the root, in namespaces of its own.
pub(super) fn inside(root: &Path, script: &str) -> Result<String, String> {
    output(within(root).args(["/bin/sh", "-ec", script]))
}

/// A command in the root, in namespaces of its own.
pub(super) fn within(root: &Path) -> Command {
    const LAYERS: &str =
        "ip link set lo up; exec unshare --pid --fork --kill-child --mount --mount-proc \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "/bin/sh", "-ec", LAYERS, "sh", "--root"]);
    command.arg(root);
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C.UTF-8");
    command
}

/// All files, and the users and groups.
fn state(root: &Path) -> Result<BTreeSet<String>, String> {
    let mut find = Command::new("find");
    let listed = output(
        find.current_dir(root)
            .args([".", "-mindepth", "1", "-printf", "%P\n"]),
    )?;
    let is_besides = |name: &str| {
        let is_below = |one: &str| name == one || name.starts_with(&format!("{one}/"));
        BESIDES.iter().any(|one| is_below(one)) || name.starts_with("etc/") && name.ends_with('-')
    };
    let mut state: BTreeSet<String> = listed
        .lines()
        .filter(|name| !is_besides(name))
        .map(str::to_owned)
        .collect();
    for name in ["etc/passwd", "etc/group", "etc/shadow", "etc/gshadow"] {
        let text = fs::read_to_string(root.join(name)).unwrap_or_default();
        state.extend(text.lines().map(|line| format!("{name}: {line}")));
    }
    Ok(state)
}
