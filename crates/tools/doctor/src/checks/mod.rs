//! The checks: each is a function from what is wanted and what the host has to findings. No I/O.
//!
//! [`ALL`] lists them once, in the order of the output.

mod files;
mod kernel;
mod network;
mod path;
mod privileges;
mod servers;
#[cfg(test)]
mod tests;
mod unit;

use crate::finding::{Finding, Findings};
use crate::host::Host;
use crate::wants::Wants;

/// A check: its name, and the function that adds its findings.
type Check = (&'static str, fn(&Wants, &Host, &mut Findings));

/// All checks.
pub(crate) const ALL: [Check; 15] = [
    ("capabilities", privileges::capabilities),
    ("unit", unit::unit),
    ("files", files::files),
    ("descriptors", privileges::descriptors),
    ("tun", kernel::tun),
    ("ethernet", kernel::ethernet),
    ("forwarding", kernel::forwarding),
    ("buffers", kernel::buffers),
    ("conntrack", kernel::conntrack),
    ("cores", kernel::cores),
    ("clock", kernel::clock),
    ("ports", network::ports),
    ("bgp", network::bgp),
    ("radius", servers::radius),
    ("path", path::paths),
];

/// The findings of all checks.
pub(crate) fn all(wants: &Wants, host: &Host) -> Vec<Finding> {
    let mut list = Vec::new();
    for (name, check) in ALL {
        let mut findings = Findings::of(name);
        check(wants, host, &mut findings);
        list.extend(findings.into_list());
    }
    list
}
