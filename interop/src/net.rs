//! Two network namespaces and the virtual wire between them.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// The LAC's address on every wire.
pub(crate) const LAC: &str = "10.9.0.1";

/// The LNS's address on every wire.
pub(crate) const LNS: &str = "10.9.0.2";

/// [`LAC`] over IPv6.
pub(crate) const LAC_V6: &str = "fd09::1";

/// [`LNS`] over IPv6.
pub(crate) const LNS_V6: &str = "fd09::2";

/// A network namespace, deleted when dropped.
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates a namespace; `name` must be unique in this run.
    ///
    /// # Errors
    /// The output of `ip`.
    pub(crate) fn new(name: String) -> Result<Namespace> {
        ip(&["netns", "add", &name])?;
        let namespace = Namespace { name };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Runs `ip` on this namespace.
    ///
    /// # Errors
    /// The output of `ip`.
    pub(crate) fn ip(&self, arguments: &[&str]) -> Result<()> {
        ip(&[&["-n", self.name.as_str()], arguments].concat())
    }

    /// A command that will run in this namespace, as the started process itself: no wrapper process remains.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.name))
            .arg(program);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A namespace that cannot be deleted now disappears with the run's own namespaces.
        let _ = ip(&["netns", "delete", &self.name]);
    }
}

/// Joins two namespaces by a virtual wire, each end with its interface name. Both interfaces are down.
///
/// # Errors
/// The output of `ip`.
pub(crate) fn join(one: (&Namespace, &str), other: (&Namespace, &str)) -> Result<()> {
    let ((here, name), (there, peer)) = (one, other);
    ip(&[
        "link",
        "add",
        name,
        "netns",
        &here.name,
        "type",
        "veth",
        "peer",
        "name",
        peer,
        "netns",
        &there.name,
    ])
}

/// A LAC's namespace at [`LAC`] and an LNS's at [`LNS`], joined by an interface called `wire` in each.
pub(crate) struct Wire {
    /// The LAC's side.
    pub(crate) lac: Namespace,
    /// The LNS's side.
    pub(crate) lns: Namespace,
}

impl Wire {
    /// Creates both namespaces; `name` must be unique in this run.
    ///
    /// # Errors
    /// The output of `ip`.
    pub(crate) fn new(name: &str) -> Result<Wire> {
        let lac = Namespace::new(format!("{name}-lac"))?;
        let lns = Namespace::new(format!("{name}-lns"))?;
        join((&lac, "wire"), (&lns, "wire"))?;
        for (namespace, v4, v6) in [(&lac, LAC, LAC_V6), (&lns, LNS, LNS_V6)] {
            namespace.ip(&["address", "add", &format!("{v4}/24"), "dev", "wire"])?;
            // Without duplicate address detection it is usable at once.
            namespace.ip(&[
                "address",
                "add",
                &format!("{v6}/64"),
                "dev",
                "wire",
                "nodad",
            ])?;
            namespace.ip(&["link", "set", "wire", "up"])?;
        }
        Ok(Wire { lac, lns })
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .context("cannot start ip")?;
    if !output.status.success() {
        bail!(
            "ip {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
