//! `headend qos hosts`: the hosts that use the line of a running shaper.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use control::rows::{QosHost, QosHosts};

use super::rates::bits;
use super::running::Control;
use crate::printable;

/// The time that the rates cover.
const SPAN: Duration = Duration::from_secs(1);

/// Show the hosts that use the line most.
#[derive(Debug, clap::Args)]
pub(super) struct HostsArgs {
    #[command(flatten)]
    control: Control,
    /// Hosts to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    count: u64,
    /// Print one JSON object a line: the sums, then the hosts
    #[arg(long)]
    json: bool,
}

/// Sends the request twice: the first starts the count.
pub(super) fn run(args: &HostsArgs) -> Result<ExitCode> {
    let mut running = args.control.connect()?;
    // The second reply has rates unless the host of the shaper stalls for seconds.
    let (mut sums, mut hosts) = running.hosts(args.count)?;
    for _ in 0..3 {
        if sums.interval_s.is_some() {
            break;
        }
        std::thread::sleep(SPAN);
        (sums, hosts) = running.hosts(args.count)?;
    }
    ensure!(
        sums.interval_s.is_some(),
        "the shaper has no rates of hosts yet; try again"
    );
    if args.json {
        println!("{}", serde_json::to_string(&sums)?);
        for host in &hosts {
            println!("{}", serde_json::to_string(host)?);
        }
    } else {
        print!("{}", text(&sums, &hosts));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(sums: &QosHosts, hosts: &[QosHost]) -> String {
    let line = |host: &str, up: u64, down: u64| {
        format!("{host:<39}  {:>12}  {:>12}\n", bits(up), bits(down))
    };
    let mut text = format!("{:<39}  {:>12}  {:>12}\n", "HOST", "UP", "DOWN");
    for host in hosts {
        text += &line(&printable(&host.address), host.up_bps, host.down_bps);
    }
    text += &line("all", sums.up_bps, sums.down_bps);
    let _ = writeln!(
        text,
        "{} of {} hosts; the others use {}; over {:.1} s",
        hosts.len(),
        sums.hosts,
        bits(sums.others_bps),
        sums.interval_s.unwrap_or_default()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_host_and_one_for_all() {
        let sums = QosHosts {
            schema: QosHosts::SCHEMA.to_owned(),
            interval_s: Some(1.0),
            hosts: 2,
            up_bps: 1_000,
            down_bps: 5_000_000,
            others_bps: 0,
        };
        let host = QosHost {
            schema: QosHost::SCHEMA.to_owned(),
            address: "10.0.0.2".to_owned(),
            up_bps: 1_000,
            down_bps: 5_000_000,
        };
        let text = text(&sums, &[host]);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[1].starts_with("10.0.0.2 ") && lines[1].ends_with("5.00 Mbit/s"));
        assert_eq!(lines[3], "1 of 2 hosts; the others use 0 bit/s; over 1.0 s");
    }
}
