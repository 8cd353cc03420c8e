//! The Python wheel: its checks, and the wheels that are published.
//!
//! `crates/python` is a workspace of its own, so that no other step builds it. Its checks run in a virtual environment in
//! `target/python`, with the packages of `crates/python/requirements-test.txt`.
//!
//! Wheels for glibc are linked by zig, which can link to an older glibc than that of the build machine. Wheels for musl
//! are linked by rust-lld to the musl of the Rust toolchain: see [`musl`].

use crate::cargo::{self, Metadata};
use crate::dependencies;
use crate::run::Report;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The wheels: the target of Rust, and the oldest system by the tag of the wheel.
const WHEELS: &[(&str, &str)] = &[
    ("x86_64-unknown-linux-gnu", "manylinux_2_28"),
    ("aarch64-unknown-linux-gnu", "manylinux_2_28"),
    ("x86_64-unknown-linux-musl", "musllinux_1_2"),
    ("aarch64-unknown-linux-musl", "musllinux_1_2"),
];

/// The places that the steps use.
struct Places {
    root: PathBuf,
    /// The crate's directory.
    package: PathBuf,
    /// Its target directory, with the virtual environment in it.
    target: PathBuf,
}

impl Places {
    fn of(metadata: &Metadata) -> Places {
        Places {
            root: metadata.root.clone(),
            package: metadata.root.join("crates/python"),
            target: metadata.target.join("python"),
        }
    }

    fn venv(&self) -> PathBuf {
        self.target.join("venv")
    }

    /// A program of the virtual environment, with cargo's output in a directory of its own.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.venv().join("bin").join(name));
        self.place(&mut command);
        command
    }

    fn cargo(&self, subcommand: &str) -> Command {
        let mut command = match subcommand {
            "fmt" => cargo::command(),
            _ => cargo::locked(subcommand),
        };
        if subcommand == "fmt" {
            command.arg(subcommand);
        }
        self.place(&mut command);
        command
    }

    fn place(&self, command: &mut Command) {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let own = std::iter::once(self.venv().join("bin"));
        let paths = std::env::join_paths(own.chain(std::env::split_paths(&paths)));
        command
            .current_dir(&self.package)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("VIRTUAL_ENV", self.venv())
            .env("PATH", paths.unwrap_or_default());
    }
}

/// Checks the crate, builds the wheel and runs its tests. `headend` is the command to compare it with.
/// With `ray`, the tests on Ray and on an S3 server run too.
pub(crate) fn check(report: &mut Report, metadata: &Metadata, headend: &Path, ray: bool) -> bool {
    const NAME: &str = "environment of the Python wheel";
    let places = Places::of(metadata);
    if !in_path("python3") {
        report.left_out(NAME, "no python3; apt-get install python3-venv");
        return true;
    }
    let good = report.check("dependencies of the Python wheel", || {
        let mut own = Metadata::of(&places.package).map_err(|fault| vec![fault])?;
        own.root.clone_from(&places.root);
        dependencies::check(&own)
    }) && report.check("no C in the Python wheel", || without_c(&places))
        && report.command(
            "format of the Python wheel",
            places.cargo("fmt").arg("--check"),
        );
    let prepared = environment(&places, ray);
    if let Err(faults) = &prepared
        && faults.iter().any(|fault| is_out_of_reach(fault))
    {
        report.left_out(
            NAME,
            "its packages cannot be reached, or python3-venv is missing",
        );
        return good;
    }
    good && report.check(NAME, || prepared)
        && report.command(
            "lint of the Python wheel",
            places.cargo("clippy").args(["--", "-D", "warnings"]),
        )
        && report.command(
            "build the Python wheel",
            places
                .program("maturin")
                .args(["develop", "--locked", "--quiet"]),
        )
        && report.command(
            "types of the Python wheel",
            places
                .program("mypy")
                .args(["--strict", "python", "tests", "measure"])
                .arg("--cache-dir")
                .arg(places.target.join("mypy")),
        )
        && report.command(
            "tests of the Python wheel",
            places
                .program("python")
                .args(["-m", "unittest", "discover", "-s", "tests"])
                .env("HEADEND", headend)
                .env("CAPTURES", places.root.join("testdata/interop-trace")),
        )
}

/// Builds the wheels that are published, in `target/python/wheels`, audits them, and lists those that passed.
pub(crate) fn wheels(report: &mut Report, metadata: &Metadata) -> bool {
    let places = Places::of(metadata);
    let directory = places.target.join("wheels");
    if !report.check("environment of the Python wheel", || {
        empty(&directory).and_then(|()| environment(&places, false))
    }) {
        return false;
    }
    let mut passed = Vec::new();
    for (target, tag) in WHEELS {
        passed.extend(wheel(report, &places, &directory, target, tag));
    }
    report.check("wheels that were built and audited", || {
        let count = format!("{} of {} wheels", passed.len(), WHEELS.len());
        match passed.len() == WHEELS.len() {
            true => Ok(format!("{count}\n{}", passed.join("\n"))),
            false => Err(vec![format!("only {count}: {}", passed.join("; "))]),
        }
    })
}

/// Builds one wheel and audits it. Returns the line that lists it, if it passed.
fn wheel(
    report: &mut Report,
    places: &Places,
    directory: &Path,
    target: &str,
    tag: &str,
) -> Option<String> {
    let mut command = places.program("maturin");
    command
        .args(["build", "--release", "--locked", "--target", target])
        .args(["--compatibility", tag, "--out"])
        .arg(directory);
    let is_ready = report.check("linker of a wheel", || {
        let sysroot = PathBuf::from(rustc("sysroot")?);
        let libraries = sysroot.join("lib/rustlib").join(target);
        if !libraries.is_dir() {
            let fault = format!("no Rust for {target}: rustup target add {target}");
            return Err(vec![fault]);
        }
        if !target.ends_with("-musl") {
            command.arg("--zig");
            return Ok(format!("{target}: zig"));
        }
        let musl = musl(places, &sysroot, target)?;
        command
            .args(["--", "-C", "linker=rust-lld", "-L"])
            .arg(format!("native={}", musl.display()));
        Ok(format!("{target}: rust-lld with {}", musl.display()))
    });
    if !is_ready || !report.command("build a wheel", &mut command) {
        return None;
    }
    let mut line = None;
    report.check("audit of a wheel", || {
        let platform = format!("{tag}_{}", arch(target));
        let found = audit(places, directory, &platform)?;
        line = Some(found.clone());
        Ok(found)
    });
    line
}

/// Makes the libraries that a musl wheel is linked to, and returns their directory.
///
/// On a musl system, the C library is a shared library with the architecture in its name. auditwheel rejects a
/// musllinux wheel that needs a library with another name, and zig names musl `libc.so`. Rust has musl only as an
/// archive for static programs. This function links that archive to a shared library with the right name. The wheel
/// needs the library and does not contain it. The unwinder is Rust's `libunwind.a`, because a musl system may lack
/// `libgcc_s`.
fn musl(places: &Places, sysroot: &Path, target: &str) -> Result<PathBuf, Vec<String>> {
    let libraries = sysroot.join("lib/rustlib");
    let archives = libraries.join(target).join("lib/self-contained");
    let directory = places.target.join("musl").join(target);
    empty(&directory)?;
    let mut linker = Command::new(
        libraries
            .join(rustc("host-tuple")?)
            .join("bin")
            .join("rust-lld"),
    );
    linker
        .args(["-flavor", "gnu", "-shared", "--soname"])
        .arg(format!("libc.musl-{}.so.1", arch(target)))
        .arg("--whole-archive")
        .arg(archives.join("libc.a"))
        .arg("-o")
        .arg(directory.join("libc.so"));
    output(&mut linker)?;
    // Rust's standard library links its unwinder by the name gcc_s.
    std::fs::copy(archives.join("libunwind.a"), directory.join("libgcc_s.a"))
        .map_err(|error| vec![format!("{}: {error}", archives.display())])?;
    Ok(directory)
}

/// Checks the wheel of a platform with auditwheel. Returns the wheel's name, its size and the platform.
fn audit(places: &Places, directory: &Path, platform: &str) -> Result<String, Vec<String>> {
    let entries = std::fs::read_dir(directory).map_err(|error| vec![error.to_string()])?;
    let suffix = format!("-{platform}.whl");
    let path = entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(&suffix))
        .ok_or_else(|| vec![format!("maturin wrote no wheel for {platform}")])?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let size = path.metadata().map_or(0, |metadata| metadata.len());
    let shown = output(places.program("auditwheel").arg("show").arg(&path))?;
    match audited(&shown) {
        Some(tag) if tag == platform => Ok(format!("{name}: {size} bytes, {tag}")),
        _ => Err(vec![format!("{name} is not {platform}: {}", shown.trim())]),
    }
}

/// The platform tag in the output of `auditwheel show`, which breaks lines between any two words.
fn audited(shown: &str) -> Option<String> {
    let words: Vec<&str> = shown.split_whitespace().collect();
    let text = words.join(" ");
    let (_, tag) = text.split_once("is consistent with the following platform tag: \"")?;
    let (tag, _) = tag.split_once('"')?;
    Some(tag.to_owned())
}

/// The architecture of a target, as tags of wheels and musl spell it.
fn arch(target: &str) -> &str {
    target.split('-').next().unwrap_or(target)
}

/// What `rustc --print` prints.
fn rustc(what: &str) -> Result<String, Vec<String>> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = output(Command::new(rustc).args(["--print", what]))?;
    Ok(printed.trim().to_owned())
}

/// Makes an empty directory. Removes the one that was there, with its files.
fn empty(directory: &Path) -> Result<(), Vec<String>> {
    let removed = match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    removed
        .and_then(|()| std::fs::create_dir_all(directory))
        .map_err(|error| vec![format!("{}: {error}", directory.display())])
}

/// Runs a command that must succeed, and returns its standard output.
fn output(command: &mut Command) -> Result<String, Vec<String>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| vec![format!("{program}: {error}")])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(vec![format!("{program}: {text}{errors}")])
        }
    }
}

/// Makes the virtual environment, or brings it up to date.
fn environment(places: &Places, ray: bool) -> Result<String, Vec<String>> {
    if !places.venv().join("bin/python").exists() {
        output(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(places.venv()),
        )?;
    }
    let lists = ["requirements-test.txt", "requirements-ray.txt"];
    let lists = &lists[..1 + usize::from(ray)];
    for list in lists {
        output(places.program("python").args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--requirement",
            list,
        ]))?;
    }
    let venv = places.venv();
    Ok(format!("{}: {}", venv.display(), lists.join(", ")))
}

/// Whether the environment lacks a network or Python's own installer, which says nothing about the wheel.
fn is_out_of_reach(fault: &str) -> bool {
    [
        "NewConnectionError",
        "Max retries",
        "name resolution",
        "Connection refused",
        "timed out",
        "ProxyError",
        "ensurepip",
    ]
    .iter()
    .any(|sign| fault.contains(sign))
}

/// Checks that no dependency of the wheel compiles C: that would need a C compiler for each target.
fn without_c(places: &Places) -> Result<String, Vec<String>> {
    let output = places
        .cargo("tree")
        .args([
            "--target",
            "all",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .output();
    let output = output.map_err(|error| vec![error.to_string()])?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]);
    }
    // Windows and macOS are no targets of ours, but cc may come with them.
    let c = [
        "zstd-sys ",
        "bzip2-sys ",
        "lzma-sys ",
        "libz-sys ",
        "lz4-sys ",
    ];
    let found = text
        .lines()
        .filter(|line| c.iter().any(|name| line.starts_with(name)));
    let found: Vec<String> = found.map(|line| format!("{line} is C")).collect();
    match found.is_empty() {
        true => Ok(format!("{} packages", text.lines().count())),
        false => Err(found),
    }
}

fn in_path(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_wheel_does_not_count_as_its_tag() {
        let shown = "\nheadend-0.1.0-cp310-abi3-musllinux_1_2_x86_64.whl is consistent with\nthe following platform tag: \"linux_x86_64\".\n";
        assert_eq!(audited(shown).as_deref(), Some("linux_x86_64"));
        assert_eq!(audited("musllinux_1_2_x86_64.whl is no wheel"), None);
    }
}
