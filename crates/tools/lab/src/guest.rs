//! Runs the experiment in a guest: QEMU boots an unpacked Debian kernel on this machine's files, in virtual time, and
//! headend measures there in namespaces of the guest's kernel.
//!
//! The scripts that boot it are those of the interop tests. This machine's root file system is visible in the guest,
//! read-only; results come back through a directory below `--out`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use reactor::Signals;
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};

/// The scripts, by name. `boot` calls the others.
const SCRIPTS: [(&str, &str); 3] = [
    ("boot", include_str!("../../../../interop/kernel-lab/boot")),
    (
        "guest-init",
        include_str!("../../../../interop/kernel-lab/guest-init"),
    ),
    (
        "make-initrd",
        include_str!("../../../../interop/kernel-lab/make-initrd"),
    ),
];

/// Programs that the scripts need, with their packages in Debian.
const PROGRAMS: [(&str, &str); 5] = [
    ("bash", "bash"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("depmod", "kmod"),
    ("qemu-system-x86_64", "qemu-system-x86"),
];

/// Where programs are that are not in every user's path.
const MORE_PATH: &str = "/usr/sbin:/sbin";

/// Copies headend into the guest's memory first: the guest's clock jumps while it reads this machine's files. A line from
/// outside stops it.
const COMMAND: &str = "set -e; cp headend /tmp/headend; cat /tmp/headend > /dev/null; touch started; status=0; \
    /tmp/headend lab home-gateway \"$@\" -o /tmp/out & lab=$!; \
    { read -r _ < /dev/ttyS1 && kill -TERM $lab; } 2> /dev/null & \
    wait $lab || status=$?; mkdir -p out; cp -r /tmp/out/. out || true; exit $status";

/// The pipes of the guest's second serial line, in the guest's directory, are `line.in` and `line.out`.
const LINE: &str = "line";

/// Longest time between two looks at the guest and at signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Ends the guest and removes its directory when this process ends, however it ends: the shell's standard input is then
/// closed.
const KEEPER: &str = "trap '' HUP INT TERM; read -r _; kill -TERM \"-$0\" 2> /dev/null; \
    sleep 2; kill -KILL \"-$0\" 2> /dev/null; \
    for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- \"$1\" 2> /dev/null && exit; sleep 0.2; done";

/// A guest to be run.
pub(super) struct Guest {
    /// The unpacked kernel package.
    pub(super) kernel: PathBuf,
    /// The directory for the results.
    pub(super) directory: PathBuf,
    /// The text of a policy file, if the treatment is one.
    pub(super) policy: Option<(String, String)>,
    /// Arguments of `headend lab home-gateway` in the guest.
    pub(super) words: Vec<String>,
    /// Longest time of the guest on this machine's clock.
    pub(super) longest: Duration,
}

impl Guest {
    /// Runs it. Returns what it printed on standard output; its files are in the directory then.
    ///
    /// # Errors
    /// A program or the kernel is missing, the guest does not boot, or headend fails in it.
    pub(super) fn run(&self) -> Result<String> {
        let signals = Signals::new()?;
        let kernel = self.kernel()?;
        programs()?;
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot make {}", self.directory.display()))?;
        let work = Work::new(&self.directory)?;
        self.furnish(&work.0)?;
        let bar = ProgressBar::new_spinner();
        bar.set_message(format!(
            "a guest with the kernel in {} measures",
            kernel.display()
        ));
        bar.enable_steady_tick(Duration::from_millis(200));
        let mut line = line(&work.0)?;
        let mut child = Running::start(&work.0, &kernel, self)?;
        let mut is_stopped = false;
        let status = loop {
            if let Some(status) = child.boot.try_wait()? {
                break status;
            }
            if signals.next_signal()?.is_some() {
                if is_stopped {
                    bail!("stopped twice; nothing is written");
                }
                is_stopped = true;
                bar.set_message("the guest ends; a second signal ends it without results");
            }
            if is_stopped {
                // Again and again: a line that comes before the guest listens is lost.
                // If the pipe is full, there are lines enough.
                let _ = line.write(b"\n");
            }
            std::thread::sleep(LOOK_EVERY);
        };
        drop(child);
        bar.finish_and_clear();
        self.collect(&work.0, status)
    }

    /// The kernel's directory, if it has what `boot` needs.
    fn kernel(&self) -> Result<PathBuf> {
        let kernel = fs::canonicalize(&self.kernel)
            .with_context(|| format!("--guest {}", self.kernel.display()))?;
        let has_modules =
            ["lib/modules", "usr/lib/modules"].map(|place| kernel.join(place).is_dir());
        if !has_modules.contains(&true) {
            bail!(
                "--guest {}: no lib/modules there; it is a kernel package of Debian unpacked by dpkg-deb -x, see docs/home-gateway.md",
                self.kernel.display()
            );
        }
        Ok(kernel)
    }

    fn furnish(&self, work: &Path) -> Result<()> {
        for (name, text) in SCRIPTS {
            let path = work.join(name);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        if let Some((name, text)) = &self.policy {
            fs::write(work.join(name), text)?;
        }
        let headend = std::env::current_exe()?;
        fs::copy(&headend, work.join("headend"))
            .with_context(|| format!("cannot copy {}", headend.display()))?;
        Ok(())
    }

    fn collect(&self, work: &Path, status: ExitStatus) -> Result<String> {
        let read = |name: &str| fs::read(work.join(name)).unwrap_or_default();
        let said = String::from_utf8_lossy(&read("errors")).into_owned();
        let mut found = 0;
        for file in fs::read_dir(work.join("out"))
            .into_iter()
            .flatten()
            .flatten()
        {
            fs::copy(file.path(), self.directory.join(file.file_name()))?;
            found += 1;
        }
        match status.code() {
            Some(0) if found > 0 => {
                eprint!("{said}");
                let printed = String::from_utf8_lossy(&read("printed")).into_owned();
                Ok(printed.replace("/tmp/out", &self.directory.display().to_string()))
            }
            Some(124) => bail!(
                "the guest did not finish within {} s: {}",
                self.longest.as_secs(),
                said.trim()
            ),
            _ => bail!(
                "in the guest: {}",
                said.trim().trim_start_matches("headend lab: ")
            ),
        }
    }
}

/// Makes the pipes of the guest's second serial line, and opens the one that leads to it.
fn line(work: &Path) -> Result<fs::File> {
    for end in ["in", "out"] {
        let path = work.join(format!("{LINE}.{end}"));
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)
            .with_context(|| format!("cannot make {}", path.display()))?;
    }
    // Open for reading too, so that opening does not wait for the guest.
    let path = work.join(format!("{LINE}.in"));
    let opened = fs::File::options()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(&path);
    opened.with_context(|| format!("cannot open {}", path.display()))
}

fn programs() -> Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{path}:{MORE_PATH}");
    for (program, package) in PROGRAMS {
        let is_there = |directory: &str| Path::new(directory).join(program).is_file();
        if !path.split(':').any(is_there) {
            bail!("--guest needs {program}, which is not installed; in Debian it is in {package}");
        }
    }
    Ok(())
}

/// Starts the shell of [`KEEPER`] for a process group and a directory.
fn keeper(group: u32, work: &Path) -> Result<Child> {
    Command::new("sh")
        .args(["-c", KEEPER, &group.to_string()])
        .arg(work)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot start sh")
}

/// A running guest, and the shell that ends it with this process.
struct Running {
    boot: Child,
    keeper: Child,
}

impl Running {
    fn start(work: &Path, kernel: &Path, guest: &Guest) -> Result<Self> {
        let output = |name: &str| fs::File::create(work.join(name));
        let boot = Command::new("bash")
            .arg("./boot")
            .arg("-k")
            .arg(kernel)
            .args(["-t", &guest.longest.as_secs().to_string(), "-s", LINE])
            .args(["--", "bash", "-c", COMMAND, "guest"])
            .args(&guest.words)
            .current_dir(work)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output("printed")?)
            .stderr(output("errors")?)
            .spawn()
            .context("cannot start bash")?;
        let keeper = keeper(boot.id(), work)?;
        Ok(Self { boot, keeper })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.boot.try_wait(), Ok(Some(_))) {
            // Its number may belong to another process by now.
            let _ = self.keeper.kill();
        }
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        let _ = self.boot.wait();
    }
}

/// A directory for one guest. It is removed when this is dropped.
struct Work(PathBuf);

impl Work {
    fn new(directory: &Path) -> Result<Self> {
        let name = format!(".guest-{}", std::process::id());
        let path = fs::canonicalize(directory)?.join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Prints what the guest printed.
pub(super) fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_and_its_directory_do_not_outlive_this_process() {
        let name = format!("headend-guest-{}", std::process::id());
        let work = std::env::temp_dir().join(name);
        fs::create_dir_all(work.join("out")).expect("a directory");
        let mut group = Command::new("sh")
            .args(["-c", "sleep 600 & sleep 600"])
            .process_group(0)
            .spawn()
            .expect("sh");
        let mut keeper = keeper(group.id(), &work).expect("sh");
        // As when this process ends.
        drop(keeper.stdin.take());
        assert!(!group.wait().expect("ended").success());
        keeper.wait().expect("ended");
        assert!(!work.exists());
    }
}
