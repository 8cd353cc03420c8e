//! `headend qos check FILE`, and the same checks for `headend qos run`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use qos::policy::Policy;
use qos::units::Rate;
use serde_json::{Value, json};
use settings::{Fault, Faults};

use super::system::{self, Interface};

/// Report faults and unwise settings in a policy file.
#[derive(Debug, clap::Args)]
pub(super) struct QosCheckArgs {
    /// The policy file
    file: PathBuf,
    /// Check the interface of the hosts too
    #[arg(long, value_name = "IF")]
    lan: Option<String>,
    /// Check the interface towards the provider too
    #[arg(long, value_name = "IF")]
    wan: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A policy file and the result of checking it.
#[derive(Debug)]
pub(super) struct Examined {
    /// `None` if the policy is invalid.
    policy: Option<Policy>,
    name: String,
    faults: Faults,
    advice: Faults,
    /// Mismatches between the interfaces and the policy.
    system: Vec<String>,
}

impl Examined {
    /// Reads the policy at `path`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = settings::text_of(path)?;
        let (policy, faults, advice) = match Policy::parse(&text) {
            Ok((policy, advice)) => (Some(policy), Faults::default(), advice.of(path)),
            Err(faults) => (None, faults.of(path), Faults::default()),
        };
        Ok(Self {
            policy,
            name: path.display().to_string(),
            faults,
            advice,
            system: Vec::new(),
        })
    }

    /// Checks the interfaces too.
    ///
    /// # Errors
    /// An interface does not exist, or both names mean the same interface.
    pub(super) fn look_at(&mut self, lan: Option<&str>, wan: Option<&str>) -> Result<()> {
        let mut indices = Vec::new();
        for (option, interface) in [("--lan", lan), ("--wan", wan)] {
            let Some(interface) = interface else { continue };
            let Some(found) = system::interface(interface) else {
                bail!("{option} {interface}: there is no such interface");
            };
            indices.push(found.index);
            if let Some(policy) = &self.policy {
                let said = compare(option, interface, &found, policy);
                self.system.extend(said);
            }
        }
        if let [lan, wan] = indices.as_slice()
            && lan == wan
        {
            bail!("--lan and --wan are the same interface; give the two that packets pass between");
        }
        Ok(())
    }

    /// The faults that make the policy unusable, one per line.
    pub(super) fn faults(&self) -> Vec<String> {
        self.faults.lines()
    }

    /// The warnings, one per line.
    pub(super) fn advice(&self) -> Vec<String> {
        let system = self.system.iter().map(|line| format!("{line} (advice)"));
        self.advice.lines().into_iter().chain(system).collect()
    }

    /// The policy; `None` if it is invalid.
    pub(super) fn policy(self) -> Option<Policy> {
        self.policy
    }
}

/// Prints faults and warnings in a compiler's format. Exit status 0: the policy is usable; 2: it is not.
pub(super) fn run(args: &QosCheckArgs) -> Result<ExitCode> {
    let mut examined = Examined::read(&args.file)?;
    examined.look_at(args.lan.as_deref(), args.wan.as_deref())?;
    let is_usable = examined.policy.is_some();
    if args.json {
        let document = json!({
            "schema": "qos.check/1",
            "file": examined.name,
            "usable": is_usable,
            "faults": examined.faults.iter().map(object).collect::<Vec<_>>(),
            "advice": examined.advice.iter().map(object).collect::<Vec<_>>(),
            "system": examined.system,
        });
        writeln!(std::io::stdout().lock(), "{document:#}")?;
    } else {
        for line in examined.faults().iter().chain(&examined.advice()) {
            eprintln!("{line}");
        }
        if is_usable {
            writeln!(std::io::stdout().lock(), "{}: ok", examined.name)?;
        }
    }
    Ok(match is_usable {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(2),
    })
}

fn object(fault: &Fault) -> Value {
    json!({
        "line": fault.place.map(|place| place.line),
        "column": fault.place.map(|place| place.column),
        "key": fault.key,
        "message": fault.message,
        "right": fault.remedy,
    })
}

/// Mismatches between one interface and the policy.
fn compare(option: &str, name: &str, found: &Interface, policy: &Policy) -> Vec<String> {
    let mut said = Vec::new();
    let (key, rate) = match option {
        "--lan" => ("link.down", policy.down_bps()),
        _ => ("link.up", policy.up_bps()),
    };
    if !found.is_up {
        said.push(format!("{option} {name}: is down; ip link set {name} up"));
    }
    if let Some(master) = &found.master {
        said.push(format!(
            "{option} {name}: is part of {master}, which forwards too; ip link set {name} nomaster"
        ));
    }
    if let Some(address) = found.forwarding {
        let family = if address.is_ipv4() {
            "ip_forward"
        } else {
            "conf.all.forwarding"
        };
        let version = if address.is_ipv4() { 4 } else { 6 };
        said.push(format!(
            "{option} {name}: has the address {address}, and the kernel forwards too: packets may pass twice and \
             unshaped; ip address flush dev {name}, or sysctl net.ipv{version}.{family}=0"
        ));
    }
    if let (Some(rate), Some(speed)) = (rate, found.speed_bps)
        && rate > speed
    {
        said.push(format!(
            "{option} {name}: {key} is {}, and the interface carries {}; give a rate below that",
            Rate(rate),
            Rate(speed)
        ));
    }
    if found.mtu != policy.mtu() {
        said.push(format!(
            "{option} {name}: packets of {} octets pass, and link.mtu is {}; give mtu = {}",
            found.mtu,
            policy.mtu(),
            found.mtu
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_slower_or_takes_other_packets_is_named() {
        let text = "[link]\nup = \"20mbit\"\ndown = \"90mbit\"\n";
        let policy = Policy::parse(text).expect("a policy").0;
        let interface = Interface {
            index: 7,
            speed_bps: Some(10_000_000),
            mtu: 1_400,
            is_up: false,
            master: Some("br0".to_owned()),
            forwarding: Some("192.0.2.9".parse().expect("an address")),
        };
        let said = compare("--wan", "eth1", &interface, &policy);
        assert_eq!(said.len(), 5, "{said:?}");
        assert!(said[1].contains("part of br0"), "{said:?}");
        assert!(said[2].contains("has the address 192.0.2.9"), "{said:?}");
        assert!(said[3].contains("link.up is 20Mbit"), "{said:?}");
        assert!(said[4].contains("mtu = 1400"), "{said:?}");
        let fitting = Interface {
            index: 7,
            speed_bps: Some(1_000_000_000),
            mtu: 1_500,
            is_up: true,
            master: None,
            forwarding: None,
        };
        assert_eq!(
            compare("--lan", "eth0", &fitting, &policy),
            Vec::<String>::new()
        );
    }
}
