//! `headend qos rate`: other rates for a running shaper.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use qos::units::{self, Rate};

use super::rows::RateChange;
use super::running::Control;

/// Change the rates of a running shaper until the next reload.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("rates").args(["up", "down"]).required(true).multiple(true)))]
pub(super) struct RateArgs {
    #[command(flatten)]
    control: Control,
    /// The rate to the provider, as tc writes it: 2.3mbit
    #[arg(long, value_name = "RATE", value_parser = rate)]
    up: Option<u64>,
    /// The rate to the hosts
    #[arg(long, value_name = "RATE", value_parser = rate)]
    down: Option<u64>,
    /// Print the row as JSON
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<u64> {
    units::rate(text).map_err(|wrong| anyhow!("{wrong}"))
}

/// Sends the request, and prints the rates in force.
pub(super) fn run(args: &RateArgs) -> Result<ExitCode> {
    let change = RateChange {
        up_bps: args.up,
        down_bps: args.down,
    };
    let rate = args.control.connect()?.rate(change)?;
    for line in &rate.advice {
        eprintln!("{line}");
    }
    if args.json {
        println!("{}", serde_json::to_string(&rate)?);
    } else {
        let shown =
            |bps: Option<u64>| bps.map_or("not shaped".to_owned(), |bps| Rate(bps).to_string());
        let (up, down) = (shown(rate.up_bps), shown(rate.down_bps));
        println!("up {up}, down {down}: in force until the next reload");
    }
    Ok(ExitCode::SUCCESS)
}
