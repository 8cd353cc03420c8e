//! `headend qos check FILE`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use qos::policy::units::Rate;
use qos::policy::{Policy, Remark};
use serde_json::{Value, json};

use super::system::{self, Interface};

/// Say what is wrong or unwise in a policy file.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The policy
    file: PathBuf,
    /// The interface of the hosts: look at it too
    #[arg(long, value_name = "IF")]
    lan: Option<String>,
    /// The interface towards the provider: look at it too
    #[arg(long, value_name = "IF")]
    wan: Option<String>,
    /// One JSON document on standard output
    #[arg(long)]
    json: bool,
}

/// Prints what is to be said as compilers do. Exit status 0: it can be used; 2: it cannot.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let name = args.file.display().to_string();
    let text = super::text_of(&args.file)?;
    let (policy, faults, advice) = match Policy::parse(&text) {
        Ok((policy, advice)) => (Some(policy), Vec::new(), advice),
        Err(faults) => (None, faults, Vec::new()),
    };
    let mut system = Vec::new();
    for (option, interface) in [("--lan", &args.lan), ("--wan", &args.wan)] {
        let Some(interface) = interface else { continue };
        let Some(found) = system::interface(interface) else {
            bail!("{option} {interface}: there is no such interface");
        };
        if let Some(policy) = &policy {
            system.extend(compare(option, interface, found, policy));
        }
    }
    if args.lan.is_some() && args.lan == args.wan {
        bail!("--lan and --wan are the same interface; give the two that packets pass between");
    }
    if args.json {
        let document = json!({
            "version": 1,
            "file": name,
            "usable": policy.is_some(),
            "faults": faults.iter().map(remark).collect::<Vec<_>>(),
            "advice": advice.iter().map(remark).collect::<Vec<_>>(),
            "system": system,
        });
        writeln!(std::io::stdout().lock(), "{document:#}")?;
    } else {
        for fault in &faults {
            eprintln!("{name}:{fault}");
        }
        for advice in &advice {
            eprintln!("{name}:{advice} (advice)");
        }
        for line in &system {
            eprintln!("{line} (advice)");
        }
        if policy.is_some() {
            writeln!(std::io::stdout().lock(), "{name}: ok")?;
        }
    }
    Ok(match policy {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::from(2),
    })
}

fn remark(remark: &Remark) -> Value {
    json!({
        "line": remark.line,
        "column": remark.column,
        "key": remark.key,
        "message": remark.message,
        "right": remark.right,
    })
}

/// What of an interface does not go with the policy.
fn compare(option: &str, name: &str, found: Interface, policy: &Policy) -> Vec<String> {
    let mut said = Vec::new();
    let (key, rate) = match option {
        "--lan" => ("link.down", policy.down_bps()),
        _ => ("link.up", policy.up_bps()),
    };
    if !found.is_up {
        said.push(format!("{option} {name}: is down; ip link set {name} up"));
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
    if let Some(mtu) = found.mtu
        && mtu != policy.mtu()
    {
        said.push(format!(
            "{option} {name}: packets of {mtu} octets pass, and link.mtu is {}; give mtu = {mtu}",
            policy.mtu()
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
            speed_bps: Some(10_000_000),
            mtu: Some(1_400),
            is_up: false,
        };
        let said = compare("--wan", "eth1", interface, &policy);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[1].contains("link.up is 20Mbit"), "{said:?}");
        assert!(said[2].contains("mtu = 1400"), "{said:?}");
        let fitting = Interface {
            speed_bps: Some(1_000_000_000),
            mtu: Some(1_500),
            is_up: true,
        };
        assert_eq!(
            compare("--lan", "eth0", fitting, &policy),
            Vec::<String>::new()
        );
    }
}
