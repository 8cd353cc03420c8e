//! `headend qos show`: the queues of a running shaper.
//!
//! | module | purpose |
//! |---|---|
//! | `text` | the format of `tc -s` |
//! | `table` | a line for each queue, for `--watch` |

mod table;
#[cfg(test)]
mod tests;
mod text;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use super::rates::interval;
use super::rows::fill_rates;
use super::running::Control;
use cli::screen::{Beat, Screen};

/// Show the queues of a running shaper, with the names of tc.
#[derive(Debug, clap::Args)]
pub(super) struct QosShowArgs {
    #[command(flatten)]
    control: Control,
    /// Seconds between the two readings that rates are computed from [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = interval, conflicts_with = "watch")]
    interval: Option<Duration>,
    /// Take one reading only: totals without rates
    #[arg(long, conflicts_with_all = ["interval", "watch"])]
    totals: bool,
    /// Repeat every second, or every SECONDS: on a terminal redraw a table, elsewhere print one block after the other
    #[arg(short, long, value_name = "SECONDS", value_parser = interval, num_args = 0..=1, default_missing_value = "1")]
    watch: Option<Duration>,
    /// Stop after this many readings
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print one JSON object a line for each reading
    #[arg(long)]
    json: bool,
}

/// Sends the request, and prints the queues.
pub(super) fn run(args: &QosShowArgs) -> Result<ExitCode> {
    let mut running = args.control.connect()?;
    let every = args
        .watch
        .or(args.interval)
        .unwrap_or(Duration::from_secs(1));
    let looks = match args.watch {
        Some(_) => args.count,
        None => Some(1),
    };
    let mut screen = Screen::new();
    let mut beat = Beat::new(every);
    let mut before = running.show()?;
    let mut shown = 0;
    while looks.is_none_or(|looks| shown < looks) {
        let now = if args.totals {
            before.clone()
        } else {
            beat.wait();
            let mut now = running.show()?;
            fill_rates(&mut now, &before);
            now
        };
        let text = if args.json {
            serde_json::to_string(&now)? + "\n"
        } else if args.watch.is_some() && screen.is_terminal() {
            table::table(&now)
        } else {
            text::text(&now)
        };
        match args.json {
            true => print_line(&text)?,
            false => screen.show(&text)?,
        }
        shown += 1;
        before = now;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_line(text: &str) -> Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
