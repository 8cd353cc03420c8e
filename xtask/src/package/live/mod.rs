//! A Debian with systemd as its first process, booted in namespaces of its own: the package as people use it.
//!
//! [`minute`] follows docs/install.md from `apt install` to a connected subscriber. [`units`] checks what the units do
//! under systemd itself. Needs root and a cgroup2 hierarchy; the machine ends with the test.

mod minute;
mod units;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Place, at, clean_root, deb, ensure, one, output};
use crate::run::Report;

const BOOT: &str = include_str!("boot.sh");
/// Enters a control group, and then runs the rest of its arguments.
const ENTER: &str = r#"echo $$ > "$1/cgroup.procs"; shift; exec "$@""#;
/// What the root has beside the packages that are essential to Debian.
const PACKAGES: &[&str] = &["systemd", "systemd-sysv", "dbus", "iproute2"];
/// How long something may take that is expected to happen at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// Installs the package as docs/install.md says, and checks the units.
pub(super) fn test(report: &mut Report, place: &Place) {
    let mut machine = None;
    report.check("boot a Debian with systemd", || {
        let booted = Machine::boot(place).map_err(one)?;
        let version = booted.run("systemctl --version | head -n 1").map_err(one);
        machine = Some(booted);
        Ok(version?.trim().to_owned())
    });
    let Some(machine) = machine else {
        return;
    };
    let is_up = report.check("from apt install to a connected subscriber", || {
        let deb = machine.root.join("root/headend.deb");
        fs::copy(deb::file(place), &deb).map_err(|error| one(error.to_string()))?;
        minute::test(&machine, &place.root).map_err(one)
    });
    if is_up {
        report.check("units under systemd", || units::test(&machine).map_err(one));
    }
}

/// A booted machine. Dropping it kills all its processes.
struct Machine {
    outer: Child,
    /// systemd, as the host counts it.
    systemd: u32,
    root: PathBuf,
    group: PathBuf,
    log: PathBuf,
}

impl Machine {
    fn boot(place: &Place) -> Result<Self, String> {
        ensure(output(Command::new("id").arg("-u"))?.trim() == "0", || {
            "namespaces with devices need root: run this as root".to_owned()
        })?;
        let root = clean_root::unpack(place, "systemd", PACKAGES)?;
        let group = group()?;
        let log = place.out.join("boot.log");
        let errors = fs::File::create(&log).map_err(at(&log))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", ENTER, "sh"]).arg(&group);
        command.args(["unshare", "--cgroup", "--pid", "--fork", "--kill-child"]);
        command.args(["--mount", "--net", "--uts", "--ipc"]);
        command.args(["/bin/sh", "-c", BOOT, "boot"]).arg(&root);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let outer = command
            .stderr(errors)
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut machine = Self {
            outer,
            systemd: 0,
            root,
            group,
            log,
        };
        machine.wait()?;
        Ok(machine)
    }

    /// Waits until systemd has started everything.
    fn wait(&mut self) -> Result<(), String> {
        let outer = self.outer.id();
        let children = format!("/proc/{outer}/task/{outer}/children");
        let state = until("a running system", || {
            if let Some(status) = self.outer.try_wait().map_err(|error| error.to_string())? {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                return Err(format!("the machine ends with {status}: {log}"));
            }
            let child = fs::read_to_string(&children).unwrap_or_default();
            self.systemd = child.trim().parse().unwrap_or(0);
            if self.systemd == 0 {
                return Ok(None);
            }
            // The shell that boots has no system bus yet.
            let state = self.run("systemctl is-system-running || true");
            let state = state.unwrap_or_default().trim().to_owned();
            Ok(["running", "degraded"]
                .contains(&state.as_str())
                .then_some(state))
        })?;
        ensure(state == "running", || {
            let failed = self.run("systemctl --failed --no-pager");
            format!("the system is {state}: {failed:?}")
        })
    }

    /// A command of a shell in the machine, in the home directory of root.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.systemd));
        command.args(["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"]);
        command.args(["--root", "/bin/bash", "-ec"]);
        command.arg(format!("cd\n{script}"));
        command.env_clear().envs([
            ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            ("HOME", "/root"),
            ("LC_ALL", "C.UTF-8"),
            ("SYSTEMD_PAGER", ""),
        ]);
        command
    }

    /// What a shell's command prints, if it succeeds.
    fn run(&self, script: &str) -> Result<String, String> {
        output(&mut self.shell(script))
    }

    /// A property of a unit.
    fn property(&self, unit: &str, name: &str) -> Result<String, String> {
        let text = self.run(&format!("systemctl show --value -p {name} {unit}"))?;
        Ok(text.trim().to_owned())
    }

    /// Waits until a property of a unit has a value that will do, and returns it.
    fn await_property(
        &self,
        (unit, name): (&str, &str),
        will_do: impl Fn(&str) -> bool,
    ) -> Result<String, String> {
        let mut last = String::new();
        until(name, || {
            last = self.property(unit, name)?;
            Ok(will_do(&last).then(|| last.clone()))
        })
        .map_err(|fault| {
            let status = self.run(&format!("systemctl status {unit} --no-pager || true"));
            let log = self.run(&format!("journalctl -u {unit} -n 20 --no-pager"));
            format!(
                "{unit}: {fault}: {}{}",
                status.unwrap_or_default(),
                log.unwrap_or_default()
            )
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // `--kill-child` ends systemd with `unshare`, and the namespace's other processes end with systemd.
        let _ = self.outer.kill();
        let _ = self.outer.wait();
        let is_empty = || Ok::<_, String>(remove(&self.group).is_ok().then_some(()));
        let _ = until("an empty control group", is_empty);
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A new control group in the hierarchy of version 2, which does not need to have controllers.
fn group() -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(at(Path::new("/proc")))?;
    let mut lines = mounts.lines().map(|line| line.split(' '));
    let mount = lines.find_map(|mut words| {
        let place = words.nth(1)?;
        (words.next()? == "cgroup2").then(|| PathBuf::from(place))
    });
    let mount = mount.ok_or("systemd needs control groups: no cgroup2 is mounted here")?;
    let group = mount.join(format!("headend-package-{}", std::process::id()));
    fs::create_dir_all(&group).map_err(at(&group))?;
    Ok(group)
}

/// Removes a control group and those below.
fn remove(group: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(group)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

/// Tries until there is an answer.
fn until<T>(
    what: &str,
    mut attempt: impl FnMut() -> Result<Option<T>, String>,
) -> Result<T, String> {
    let start = Instant::now();
    loop {
        if let Some(answer) = attempt()? {
            return Ok(answer);
        }
        ensure(start.elapsed() < PATIENCE, || {
            format!("no {what} after {PATIENCE:?}")
        })?;
        std::thread::sleep(Duration::from_millis(50));
    }
}
