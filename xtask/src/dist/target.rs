//! A static binary for one target: the compilers, the build, and a first run.
//!
//! The build sets what would otherwise differ between two machines: paths in messages and in symbols
//! (`--remap-path-prefix`, and `-ffile-prefix-map` for C), and the time ([`WITHOUT_TIME`]).

use super::symbols;
use crate::cargo::{self, Metadata};
use crate::run::Report;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target of `--check-reproducible` without `--target`.
pub(crate) const DEFAULT: &str = "x86_64-unknown-linux-musl";

/// Constants in place of the time in C code. The time of the commit in `SOURCE_DATE_EPOCH` would be constant for a release
/// too, but cargo compiles C and all that depends on it again when that changes, so each commit would cost a whole build.
const WITHOUT_TIME: &str = r#"-Wno-builtin-macro-redefined -D__DATE__="" -D__TIME__="""#;

/// A target that releases are built for.
struct Known {
    name: &'static str,
    arch: &'static str,
    /// C compilers, best first. Those of glibc do: the few C libraries call only what musl has too.
    compilers: &'static [&'static str],
    /// The package with the last of them.
    package: &'static str,
    objcopy: &'static str,
    /// Runs its programs on another machine.
    emulators: &'static [&'static str],
}

const KNOWN: &[Known] = &[
    Known {
        name: DEFAULT,
        arch: "x86_64",
        compilers: &["x86_64-linux-musl-gcc", "musl-gcc"],
        package: "musl-tools",
        objcopy: "objcopy",
        emulators: &["qemu-x86_64-static", "qemu-x86_64"],
    },
    Known {
        name: "aarch64-unknown-linux-musl",
        arch: "aarch64",
        compilers: &["aarch64-linux-musl-gcc", "aarch64-linux-gnu-gcc"],
        package: "gcc-aarch64-linux-gnu",
        objcopy: "aarch64-linux-gnu-objcopy",
        emulators: &["qemu-aarch64-static", "qemu-aarch64"],
    },
];

/// Builds, strips and runs the binary of a target.
pub(crate) fn build(report: &mut Report, metadata: &Metadata, name: &str) -> bool {
    let mut found = None;
    let ready = report.check("compilers of the target", || {
        let (known, compiler) = ready(name)?;
        let what = format!("{name}: C by {compiler}");
        found = Some((known, compiler));
        Ok(what)
    });
    let Some((known, compiler)) = found.filter(|_| ready) else {
        return false;
    };
    let directory = metadata.target.join(name).join("dist");
    let mut command = command(&metadata.root, known, compiler);
    command.env("CARGO_TARGET_DIR", &metadata.target);
    report.command("build the static binary", &mut command)
        && symbols::split(report, &directory, known.objcopy)
        && report.check("the binary is static and runs", || {
            first_run(known, &directory.join("headend"), &metadata.root)
        })
}

/// The command that builds a target of the tree at `root`.
fn command(root: &Path, known: &Known, compiler: &str) -> Command {
    let cargo_home = cargo_home();
    let maps = [
        (root.to_path_buf(), "/headend"),
        (cargo_home.join("registry/src"), "/crates"),
        (cargo_home, "/cargo"),
        (sysroot(), "/rust"),
    ];
    // The last map that fits is used, so longer paths come last.
    let mut flags: Vec<String> = maps
        .iter()
        .rev()
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect();
    flags.push("-Clink-self-contained=yes".to_owned());
    flags.push("-Clinker=rust-lld".to_owned());
    let map_c = maps
        .iter()
        .rev()
        .map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
    let mut flags_c: Vec<String> = map_c.collect();
    // musl has no functions with checks of their own.
    flags_c.push("-U_FORTIFY_SOURCE -fno-stack-protector".to_owned());
    flags_c.push(WITHOUT_TIME.to_owned());
    if known.arch == "aarch64" {
        // Otherwise atomics call a library that only a GNU toolchain links.
        flags_c.push("-mno-outline-atomics".to_owned());
    }
    let underscored = known.name.replace('-', "_");
    let mut command = cargo::locked("build");
    command
        .args([
            "--profile",
            "dist",
            "--package",
            "headend",
            "--target",
            known.name,
        ])
        .current_dir(root)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env(format!("CC_{underscored}"), compiler)
        .env(format!("CFLAGS_{underscored}"), flags_c.join(" "))
        .env("CARGO_INCREMENTAL", "0")
        .env("SOURCE_DATE_EPOCH", "0");
    command
}

/// The command that builds a target in a tree at another place, with its output below that tree.
///
/// # Errors
/// What is missing.
pub(super) fn command_elsewhere(root: &Path, name: &str) -> Result<Command, Vec<String>> {
    let (known, compiler) = ready(name)?;
    let mut command = command(root, known, compiler);
    command.env("CARGO_TARGET_DIR", root.join("target"));
    Ok(command)
}

/// Checks what a build of the target needs.
fn ready(name: &str) -> Result<(&'static Known, &'static str), Vec<String>> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
        return Err(vec![format!(
            "{name} is not a target of releases; known: {}",
            names.join(", ")
        )]);
    };
    let mut faults = Vec::new();
    if !sysroot().join("lib/rustlib").join(name).is_dir() {
        faults.push(format!("no Rust for {name}: rustup target add {name}"));
    }
    let compiler = known.compilers.iter().copied().find(|name| in_path(name));
    match compiler {
        Some(compiler) if faults.is_empty() => Ok((known, compiler)),
        Some(_) => Err(faults),
        None => {
            let (names, package) = (known.compilers.join(" or "), known.package);
            faults.push(format!("no C compiler {names}: apt-get install {package}"));
            Err(faults)
        }
    }
}

/// Runs the binary: its version, and the analysis of a capture.
fn first_run(known: &Known, binary: &Path, root: &Path) -> Result<String, Vec<String>> {
    let native = std::env::consts::ARCH == known.arch;
    let emulator = known.emulators.iter().copied().find(|name| in_path(name));
    let runner = match (native, emulator) {
        (true, _) => None,
        (false, Some(emulator)) => Some(emulator),
        (false, None) => {
            return Err(vec![format!(
                "nothing runs programs for {} here: apt-get install qemu-user-static",
                known.arch
            )]);
        }
    };
    let headend = |arguments: &[&str]| -> Result<String, Vec<String>> {
        let mut command = Command::new(runner.map_or(binary, Path::new));
        if runner.is_some() {
            command.arg(binary);
        }
        let output = command.args(arguments).current_dir(root).output();
        match output {
            Ok(output) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Ok(output) => Err(vec![format!(
                "headend {}: {}: {}",
                arguments.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )]),
            Err(error) => Err(vec![format!("{}: {error}", binary.display())]),
        }
    };
    if is_dynamic(binary).map_err(|error| vec![error.to_string()])? {
        return Err(vec![format!("{} needs an interpreter", binary.display())]);
    }
    let version = headend(&["--version"])?;
    let capture = "testdata/interop-trace/conn-size.pcap.gz";
    let report = headend(&["trace", "--json", capture])?;
    if !report.contains("\"schema\":\"trace.connection/1\"") {
        return Err(vec![format!("trace printed no connection: {report}")]);
    }
    let by = runner.map_or(String::new(), |runner| format!(" under {runner}"));
    Ok(format!("{}{by}: version and trace", version.trim()))
}

/// Whether an ELF file of 64 bits, little-endian, has a program header of type `PT_INTERP`.
fn is_dynamic(binary: &Path) -> std::io::Result<bool> {
    let bytes = std::fs::read(binary)?;
    let number = |at: usize, length: usize| {
        let octets = bytes.get(at..at + length).unwrap_or_default();
        octets
            .iter()
            .rev()
            .fold(0_usize, |sum, &octet| sum << 8 | usize::from(octet))
    };
    let (headers, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    Ok((0..count).any(|index| number(headers + index * size, 4) == 3))
}

fn in_path(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join(name).is_file())
}

fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

fn sysroot() -> PathBuf {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    PathBuf::from(String::from_utf8_lossy(&text).trim())
}

/// The time of the commit in seconds since 1970, or 0 outside of a repository.
pub(super) fn commit_time(root: &Path) -> String {
    let output = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(root)
        .output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    match text.is_empty() {
        true => "0".to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_target_is_refused_with_the_known_ones() {
        let faults = ready("riscv64gc-unknown-linux-musl")
            .map(|_| ())
            .unwrap_err();
        assert!(faults[0].contains(DEFAULT), "{faults:?}");
    }

    #[test]
    fn this_program_needs_an_interpreter() {
        let this = std::env::current_exe().unwrap();
        assert_eq!(is_dynamic(&this).unwrap(), cfg!(target_env = "gnu"));
    }
}
