//! Does what systemd does for `systemctl start`, `reload` and `stop`, by the unit that is installed in a root: its
//! directories, its user and capabilities, its commands and the messages that they send.
//!
//! Left out: what needs systemd itself, such as the mounts and the filter of system calls.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::clean_root::{inside, within};
use super::{at, ensure, output};

const UNIT: &str = "usr/lib/systemd/system/headend.service";

/// The installed unit.
struct Unit(String);

impl Unit {
    /// The last value of a key.
    fn value(&self, key: &str) -> Result<&str, String> {
        let mut lines = self.0.lines().rev();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.ok_or_else(|| format!("the unit has no {key}="))
    }

    /// Capabilities in the words of setpriv(1).
    fn capabilities(&self, key: &str) -> Result<String, String> {
        let names = self.value(key)?.to_ascii_lowercase();
        let names = names.split(' ').map(|name| name.trim_start_matches("cap_"));
        Ok(names.fold("-all".to_owned(), |all, name| format!("{all},+{name}")))
    }
}

/// A process that is killed if the test does not end it.
struct Running(Child);

impl Running {
    /// Ends the process that the outer ones started.
    fn stop(&self) -> Result<(), String> {
        let own = self.0.id();
        let child = PathBuf::from(format!("/proc/{own}/task/{own}/children"));
        let child = fs::read_to_string(&child).map_err(at(&child))?;
        output(Command::new("kill").args(["-TERM", child.trim()])).map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the service, talks to it, reloads it and stops it.
pub(super) fn test(root: &Path) -> Result<String, String> {
    let unit = fs::read_to_string(root.join(UNIT)).map_err(at(root))?;
    let unit = Unit(unit);
    let user = unit.value("User")?;
    let id = |what: &str| inside(root, &format!("id {what} {user}"));
    let (uid, gid) = (id("-u")?.trim().to_owned(), id("-g")?.trim().to_owned());
    directories(root, &unit, (&uid, &gid))?;
    let ambient = unit.capabilities("AmbientCapabilities")?;
    let bounding = unit.capabilities("CapabilityBoundingSet")?;
    let limited = format!(
        "exec setpriv --reuid {uid} --regid {gid} --init-groups --no-new-privs \
         --inh-caps={ambient} --ambient-caps={ambient} --bounding-set={bounding}"
    );
    let command = |key: &str| Ok::<_, String>(format!("{limited} {}", unit.value(key)?));

    let manager = Manager::listen(root)?;
    let mut running = manager.start(root, &command("ExecStart")?)?;
    manager.expect("READY=1")?;
    let shown = inside(root, "headend show server --json")?;
    ensure(shown.contains("127.0.0.1:1701"), || {
        format!("show server: {shown}")
    })?;
    inside(root, &command("ExecReload")?)?;
    for message in ["RELOADING=1", "READY=1", "WATCHDOG=1"] {
        manager.expect(message)?;
    }
    running.stop()?;
    manager.expect("STOPPING=1")?;
    let status = running.0.wait().map_err(|error| error.to_string())?;
    ensure(status.success(), || format!("it ends with {status}"))?;
    for name in ["run/notify", "tmp/log"] {
        fs::remove_file(root.join(name)).map_err(at(root))?;
    }
    // systemd removes it when the service has ended; the daemon must have left it empty.
    fs::remove_dir(root.join("run/headend")).map_err(at(root))?;
    Ok(format!(
        "READY, reload, watchdog and stop as user {user} ({uid})"
    ))
}

/// Makes the directories of the unit, and what tmpfiles.d lists.
fn directories(root: &Path, unit: &Unit, (uid, gid): (&str, &str)) -> Result<(), String> {
    for (key, parent) in [("RuntimeDirectory", "run"), ("StateDirectory", "var/lib")] {
        let directory = root.join(parent).join(unit.value(key)?);
        let mode = u32::from_str_radix(unit.value(&format!("{key}Mode"))?, 8);
        let mode = fs::Permissions::from_mode(mode.map_err(|error| error.to_string())?);
        fs::create_dir_all(&directory).map_err(at(&directory))?;
        fs::set_permissions(&directory, mode).map_err(at(&directory))?;
        chown(&directory, uid.parse().ok(), gid.parse().ok()).map_err(at(&directory))?;
    }
    let mut tmpfiles = Command::new("systemd-tmpfiles");
    tmpfiles.arg("--create").arg("--root").arg(root);
    output(tmpfiles.arg("headend.conf")).map(drop)
}

/// The service manager's end of the notify socket.
struct Manager {
    socket: UnixDatagram,
    log: PathBuf,
}

impl Manager {
    fn listen(root: &Path) -> Result<Self, String> {
        let path = root.join("run/notify");
        let socket = UnixDatagram::bind(&path).map_err(at(&path))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).map_err(at(&path))?;
        let patience = Some(Duration::from_secs(30));
        socket.set_read_timeout(patience).map_err(at(&path))?;
        let log = root.join("tmp/log");
        Ok(Self { socket, log })
    }

    fn start(&self, root: &Path, command: &str) -> Result<Running, String> {
        let log = fs::File::create(&self.log).map_err(at(&self.log))?;
        let mut start = within(root);
        start
            .env("NOTIFY_SOCKET", "/run/notify")
            .env("WATCHDOG_USEC", "2000000")
            .args(["/bin/sh", "-ec", command])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = start.spawn().map_err(|error| error.to_string())?;
        Ok(Running(child))
    }

    /// Waits for a message that contains `text`.
    fn expect(&self, text: &str) -> Result<(), String> {
        let mut octets = [0; 1024];
        loop {
            let received = self.socket.recv(&mut octets);
            if received
                .as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::Interrupted)
            {
                continue;
            }
            let received = received.map_err(|error| {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                format!("no {text}: {error}: {log}")
            })?;
            if String::from_utf8_lossy(&octets[..received]).contains(text) {
                return Ok(());
            }
        }
    }
}
