//! The namespaces that hold a whole run: everything started, mounted or configured in them disappears when it
//! ends.

use crate::{Options, capture, golac, runner};
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The longest a whole run may take before it is aborted: tests, and measurements, which boot up to 60 guests.
const TESTS_MAX: Duration = Duration::from_secs(1_800);
const MEASURES_MAX: Duration = Duration::from_secs(8 * 3_600);

/// Exit code of an aborted run, as a shell returns after an interrupt.
const CUT_OFF: i32 = 130;

/// The path of the work directory inside the namespaces. xl2tpd truncates file names at 79 characters and
/// l2tpns exits on a long one, so the path must not depend on where the workspace is.
const SHORT: &str = "/run/w";

const PPPD: &str = "/usr/sbin/pppd";

/// Where a run keeps its files: configurations, logs and captures, kept for inspection afterwards.
pub(crate) struct Work {
    /// The directory itself.
    pub(crate) directory: PathBuf,
}

impl Work {
    /// The files of /etc/l2tpns as the package has them.
    pub(crate) fn l2tpns_package(&self) -> PathBuf {
        self.directory.join("package/etc/l2tpns")
    }

    /// The built LAC of `interop/golac`.
    pub(crate) fn golac(&self) -> PathBuf {
        self.directory.join("golac")
    }

    /// Debian's pppd, which is hidden at its usual path.
    pub(crate) fn pppd(&self) -> PathBuf {
        self.directory.join("pppd-of-debian")
    }

    /// The golden messages as a capture file.
    pub(crate) fn goldens(&self) -> PathBuf {
        self.directory.join("goldens.pcap")
    }
}

/// Builds everything that needs the machine's own network, then runs the tests in namespaces. True if all
/// passed.
///
/// # Errors
/// The namespaces cannot be created, or the work directory cannot be written.
pub(crate) fn outside(options: &Options, arguments: &[String]) -> Result<bool> {
    let program = std::env::current_exe().context("our own path")?;
    let work = Work {
        directory: program.with_file_name("interop-run"),
    };
    if work.directory.exists() {
        std::fs::remove_dir_all(&work.directory)
            .with_context(|| format!("{}", work.directory.display()))?;
    }
    std::fs::create_dir_all(&work.directory)
        .with_context(|| format!("{}", work.directory.display()))?;
    golac::build(&options.root, &work);
    capture::write_goldens(&options.root, &work);

    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let mut child = command
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child"])
        .arg(&program)
        .arg("inside")
        .arg(&work.directory)
        .args(arguments)
        .env("PATH", path_with_daemons())
        // The inside process watches this pipe, so it exits when we do, for whatever reason.
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start unshare")?;
    let _held_open = child.stdin.take();
    let status = child.wait().context("unshare")?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("the namespaces ended with {status}"),
    }
}

/// The usual paths of daemons and of Go's installer, which an ordinary user's PATH lacks.
pub(crate) fn path_with_daemons() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin")
}

/// The first process inside the new namespaces: prepares the mounts and runs the tests. True if all passed.
///
/// # Errors
/// A mount is refused.
pub(crate) fn inside(directory: &Path, options: &Options) -> Result<bool> {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(CUT_OFF);
    });
    let run_max = match options.is_measured {
        true => MEASURES_MAX,
        false => TESTS_MAX,
    };
    std::thread::spawn(move || {
        std::thread::sleep(run_max);
        println!("interop: cut off after {} s", run_max.as_secs());
        std::process::exit(CUT_OFF);
    });
    let work = Work {
        directory: PathBuf::from(SHORT),
    };
    ready_mounts(directory, &work)?;
    let passed = runner::run(&work, options);
    if !matches!(passed, Ok(true)) {
        println!("files in {SHORT} are left in {}", directory.display());
    }
    passed
}

/// Mounts a private /run for `ip netns` and xl2tpd, and our files where the peers look for theirs.
fn ready_mounts(directory: &Path, work: &Work) -> Result<()> {
    mount(&["-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"])?;
    std::fs::create_dir_all(SHORT)?;
    mount(&["--bind", &directory.to_string_lossy(), SHORT])?;
    std::fs::create_dir_all("/run/netns")?;
    std::fs::create_dir_all("/run/xl2tpd")?;

    // The kernel may lack PPP, without which pppd exits at once and ends the session. A replacement that keeps
    // its terminal open and sends nothing leaves the session as L2TP established it. If pppd is not installed
    // or not readable, its own test reports that.
    let _ = std::fs::copy(PPPD, work.pppd());
    let pppd = work.directory.join("pppd");
    std::fs::write(
        &pppd,
        "#!/bin/sh\necho \"pppd stands still on $1\"\nexec sleep 600\n",
    )?;
    rustix::fs::chmod(&pppd, rustix::fs::Mode::from_raw_mode(0o755))?;
    bind(&pppd, PPPD)?;

    // The files that the package has there, before others cover them; a missing package fails its own tests.
    let package = work.l2tpns_package();
    std::fs::create_dir_all(&package)?;
    for name in ["startup-config", "users", "ip_pool"] {
        let _ = std::fs::copy(Path::new("/etc/l2tpns").join(name), package.join(name));
    }
    let l2tpns = work.directory.join("etc-l2tpns");
    std::fs::create_dir_all(&l2tpns)?;
    std::fs::write(l2tpns.join("users"), "")?;
    std::fs::write(l2tpns.join("ip_pool"), "10.66.0.0/29\n")?;
    bind(&l2tpns, "/etc/l2tpns")
}

/// Mounts `from` over `to`; a missing `to` belongs to a missing peer, whose tests will fail.
fn bind(from: &Path, to: &str) -> Result<()> {
    if !Path::new(to).exists() {
        return Ok(());
    }
    mount(&["--bind", &from.to_string_lossy(), to])
}

fn mount(arguments: &[&str]) -> Result<()> {
    let output = Command::new("mount")
        .args(arguments)
        .output()
        .context("cannot start mount")?;
    if !output.status.success() {
        bail!(
            "mount {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
