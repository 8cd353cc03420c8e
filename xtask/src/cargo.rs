//! How cargo is called, and what `cargo metadata` reports about this workspace.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parts of `cargo metadata` that the checks read.
pub(crate) struct Metadata {
    /// Every package of the build, ours and others', for this machine's target.
    packages: Vec<Value>,
    /// Package ids of the workspace's own members.
    members: Vec<String>,
    /// The workspace's root directory.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
}

/// One of the workspace's own crates.
pub(crate) struct Member {
    /// The package's name, without the prefix `headend-`.
    pub(crate) name: String,
    /// The package's name.
    pub(crate) package: String,
    /// The directory with its `Cargo.toml`.
    pub(crate) directory: PathBuf,
    /// The workspace crates it depends on, and the kind: `None` for ordinary, `Some("dev")`, `Some("build")`.
    pub(crate) uses: Vec<(String, Option<String>)>,
}

/// A package that is not ours; licence and source are empty if it states none.
pub(crate) struct Other<'m> {
    pub(crate) name: &'m str,
    pub(crate) version: &'m str,
    /// An SPDX expression.
    pub(crate) licence: &'m str,
    /// Such as `registry+https://github.com/rust-lang/crates.io-index`.
    pub(crate) source: &'m str,
}

/// The cargo that runs us, so that all steps use one toolchain, with a subcommand that must not change
/// `Cargo.lock`.
pub(crate) fn locked(subcommand: &str) -> Command {
    let mut command = command();
    command.args([subcommand, "--locked"]);
    command
}

/// The cargo that runs us.
pub(crate) fn command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if std::env::var_os("CI").is_some() {
        // A cold build does not profit from incremental files, but would spend time writing them.
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

impl Metadata {
    /// Runs `cargo metadata` for this machine's target only, so that packages for other targets need not be
    /// downloaded.
    ///
    /// # Errors
    /// cargo's error output, or that its answer is not the documented JSON.
    pub(crate) fn read() -> Result<Metadata, String> {
        Metadata::of(Path::new("."))
    }

    /// The same for the workspace in another directory.
    ///
    /// # Errors
    /// Those of [`Metadata::read`].
    pub(crate) fn of(directory: &Path) -> Result<Metadata, String> {
        let target = host_target()?;
        let output = locked("metadata")
            .current_dir(directory)
            .args(["--format-version", "1", "--filter-platform", &target])
            .output()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!(
                "cargo metadata: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        let json: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("cargo metadata: {error}"))?;
        Metadata::from_json(&json)
            .ok_or_else(|| "cargo metadata: not the answer it documents".to_owned())
    }

    fn from_json(json: &Value) -> Option<Metadata> {
        // `packages` lists the needs of every target; the resolve graph only this one's.
        let resolved: Vec<&str> = json["resolve"]["nodes"]
            .as_array()?
            .iter()
            .filter_map(|node| node["id"].as_str())
            .collect();
        let packages = json["packages"].as_array()?;
        Some(Metadata {
            packages: packages
                .iter()
                .filter(|package| {
                    package["id"]
                        .as_str()
                        .is_some_and(|id| resolved.contains(&id))
                })
                .cloned()
                .collect(),
            members: json["workspace_members"]
                .as_array()?
                .iter()
                .filter_map(|id| id.as_str().map(str::to_owned))
                .collect(),
            root: PathBuf::from(json["workspace_root"].as_str()?),
            target: PathBuf::from(json["target_directory"].as_str()?),
        })
    }

    /// The workspace's own crates.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.packages
            .iter()
            .filter(|package| self.is_ours(package))
            .filter_map(member)
            .collect()
    }

    /// Every package of the build that is not ours.
    pub(crate) fn others(&self) -> Vec<Other<'_>> {
        self.packages
            .iter()
            .filter(|package| !self.is_ours(package) && !self.is_here(package))
            .filter_map(|package| {
                Some(Other {
                    name: package["name"].as_str()?,
                    version: package["version"].as_str()?,
                    licence: package["license"].as_str().unwrap_or_default(),
                    source: package["source"].as_str().unwrap_or_default(),
                })
            })
            .collect()
    }

    /// A package of this repository that another of its workspaces has.
    fn is_here(&self, package: &Value) -> bool {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        package["source"].is_null() && Path::new(manifest).starts_with(&self.root)
    }

    /// What cargo knows of one of the workspace's own packages.
    pub(crate) fn package(&self, name: &str) -> Option<&Value> {
        let mut ours = self.packages.iter().filter(|package| self.is_ours(package));
        ours.find(|package| package["name"] == name)
    }

    /// The oldest Rust version that the workspace supports.
    pub(crate) fn rust_version(&self) -> Option<&str> {
        let ours = self.packages.iter().filter(|package| self.is_ours(package));
        ours.filter_map(|package| package["rust_version"].as_str())
            .next()
    }

    fn is_ours(&self, package: &Value) -> bool {
        package["id"]
            .as_str()
            .is_some_and(|id| self.members.iter().any(|member| member == id))
    }
}

fn member(package: &Value) -> Option<Member> {
    let uses = package["dependencies"]
        .as_array()?
        .iter()
        // A dependency with a path is one of our crates.
        .filter(|dependency| dependency["path"].is_string())
        .filter_map(|dependency| {
            Some((
                short(dependency["name"].as_str()?),
                dependency["kind"].as_str().map(str::to_owned),
            ))
        })
        .collect();
    Some(Member {
        name: short(package["name"].as_str()?),
        package: package["name"].as_str()?.to_owned(),
        directory: Path::new(package["manifest_path"].as_str()?)
            .parent()?
            .to_owned(),
        uses,
    })
}

fn short(package: &str) -> String {
    package
        .strip_prefix("headend-")
        .unwrap_or(package)
        .to_owned()
}

fn host_target() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .arg("-vV")
        .output()
        .map_err(|error| format!("cannot start rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc -vV names no host".to_owned())
}
