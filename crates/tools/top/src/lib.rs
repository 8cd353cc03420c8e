//! `headend top`: the state of a running daemon on a terminal. See docs/top.md.
//!
//! Three parts know nothing of each other's work. `source` asks the daemon and the shaper over their control sockets.
//! `app` is the state: keys and replies go in, and what to ask for next comes out; it does no I/O and reads no clock.
//! `draw` turns the state into cells. `terminal` alone touches the terminal and signals. Start at `app::App`.
//!
//! | module | purpose |
//! |---|---|
//! | `app` | the state, the keys, and when to ask for what |
//! | `list` | a sorted, filtered list with a selected row |
//! | `pace` | rates and recent values of the daemon's counters |
//! | `view` | the list of views |
//! | `rows` | the rows that are read, and requests and replies as values |
//! | `source` | the connections to the daemon and the shaper |
//! | `draw` | a module per view |
//! | `figures` | numbers for people, sparklines |
//! | `terminal` | the terminal, its keys, and signals |
#![forbid(unsafe_code)]

mod app;
mod draw;
mod figures;
mod list;
mod pace;
mod rows;
mod source;
mod terminal;
mod view;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use cli::Socket;

use crate::app::{App, Settings};
use crate::source::Source;
use crate::view::View;

/// The default control socket of `headend qos run`.
const QOS_SOCKET: &str = "/run/headend-qos.sock";

/// Watch a running daemon on a terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct TopArgs {
    #[command(flatten)]
    socket: Socket,
    /// The control socket of `headend qos run`, for the view of queues
    #[arg(long, value_name = "PATH", default_value = QOS_SOCKET)]
    qos_socket: PathBuf,
    /// The first view
    #[arg(long, value_enum, default_value_t = View::Overview)]
    view: View,
    /// Only rows whose names contain this text, as typed after / on the screen
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Seconds between two readings, 0.2 to 60
    #[arg(long, value_name = "S", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Print one screen as text and exit; works without a terminal
    #[arg(long)]
    once: bool,
}

const HELP: &str = "\
Keys: 1 to 5 or Tab select a view, / filters, < and > select the column to sort by, Enter opens a subscriber, h lists
all keys, q quits. NO_COLOR=1 switches colours off.

Examples:
  headend top
  headend top --view subscribers --filter @example.net
  headend top --once | head -n 4
  ssh -t edge1 headend top --interval 2";

/// An interval between readings.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().unwrap_or(f64::NAN);
    if (0.2..=60.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("write seconds from 0.2 to 60, such as 1 or 0.5".into())
    }
}

/// Runs `headend top` until the user quits; with `--once`, prints one screen.
///
/// # Errors
/// Nothing answers at the socket, or there is no usable terminal.
pub fn run(args: &TopArgs) -> Result<ExitCode> {
    let mut source = Source::new(&args.socket.path, &args.qos_socket);
    if !args.once {
        terminal::check()?;
    }
    source.connect(args.view)?;
    let app = App::new(Settings {
        view: args.view,
        filter: args.filter.clone(),
        interval: args.interval,
        is_coloured: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        is_ascii: !figures::is_utf8(|name| std::env::var(name).ok()),
    });
    if args.once {
        terminal::once(app, &mut source)?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal::run(app, source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_from_a_fifth_of_a_second_to_a_minute() {
        assert_eq!(interval("0.2"), Ok(Duration::from_millis(200)));
        for wrong in ["0", "0.1", "61", "-1", "nan", "inf", "1s", ""] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
