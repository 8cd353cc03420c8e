//! `headend tunnel create|delete`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use cli::Socket;
use cli::values::{peer, seconds};
use control::create::{self, Outcome, Wanted};
use control::net::Net;
use control::request::{Do, TunnelDelete, Wait};

/// Create and delete tunnels.
#[derive(Debug, clap::Args)]
pub struct TunnelArgs {
    #[command(flatten)]
    socket: Socket,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create tunnels to a peer
    Create(Create),
    /// Delete one tunnel, or all
    Delete(Delete),
}

#[derive(Debug, clap::Args)]
struct Create {
    /// The peer's address, and its port if it is not 1701
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = peer)]
    peer: SocketAddr,
    /// L2TPv2 or L2TPv3
    #[arg(long, value_name = "2|3", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
    version: u8,
    /// Number of tunnels
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Use the source addresses of this network in turn, such as 127.1.0.0/16
    #[arg(long, value_name = "NET")]
    from: Option<Net>,
    /// Open a session in each tunnel
    #[arg(long)]
    session: bool,
    /// Do not wait until the tunnels are up
    #[arg(long)]
    no_wait: bool,
    /// Stop waiting after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false, args = ["tunnel", "all"])]
struct Delete {
    /// The tunnel's local id
    #[arg(value_name = "ID")]
    tunnel: Option<u32>,
    /// Delete every tunnel
    #[arg(long)]
    all: bool,
    /// The L2TP version, if both versions use that tunnel id
    #[arg(long, value_name = "2|3", value_parser = clap::value_parser!(u8).range(2..=3))]
    version: Option<u8>,
}

impl Create {
    /// The tunnels to create.
    fn wanted(&self) -> Wanted {
        Wanted {
            peer: self.peer,
            version: self.version,
            count: self.count,
            from: self.from,
            session: self.session,
            wait: if self.no_wait { Wait::None } else { Wait::Up },
            timeout: self.timeout,
        }
    }
}

/// Runs the command.
pub fn run(args: &TunnelArgs) -> Result<ExitCode> {
    match &args.verb {
        Verb::Create(create) => run_create(&args.socket, &create.wanted(), create.json),
        Verb::Delete(delete) => {
            let (tunnel, version, all) = (delete.tunnel, delete.version, delete.all);
            let request = Do::TunnelDelete(TunnelDelete {
                tunnel,
                version,
                all,
            });
            let closed = args.socket.connect()?.call(&request)?;
            println!("{closed} deleted");
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run_create(socket: &Socket, wanted: &Wanted, json: bool) -> Result<ExitCode> {
    let mut client = socket.connect()?;
    let bar = cli::progress::bar(wanted.count, "tunnels");
    let outcome = create::create(&mut client, wanted, |done| bar.set_position(done.into()));
    bar.finish_and_clear();
    let outcome = outcome?;
    match json {
        true => println!("{}", document(wanted, &outcome)),
        false => report(wanted, &outcome),
    }
    Ok(if outcome.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The result as one object, `tunnel.created/1`.
fn document(wanted: &Wanted, outcome: &Outcome) -> Value {
    json!({
        "schema": "tunnel.created/1",
        "peer": wanted.peer,
        "count": wanted.count,
        "waited": wanted.wait == Wait::Up,
        "done": outcome.done,
        "failed": outcome.failed,
        "took_s": outcome.took.as_secs_f64(),
        "per_s": outcome.rate(),
        "last_tunnel": outcome.last.map(|(tunnel, _)| tunnel),
        "last_session": outcome.last.and_then(|(_, session)| session),
        "reasons": outcome.reasons,
    })
}

fn report(wanted: &Wanted, outcome: &Outcome) {
    let what = if wanted.wait == Wait::Up {
        "up"
    } else {
        "started"
    };
    match (wanted.count, outcome.last) {
        (1, Some((tunnel, None))) => println!("tunnel {tunnel} {what}"),
        (1, Some((tunnel, Some(session)))) => println!("tunnel {tunnel} session {session} {what}"),
        _ => println!(
            "{} {what}, {} failed, in {:.3} s: {:.0} a second",
            outcome.done,
            outcome.failed,
            outcome.took.as_secs_f64(),
            outcome.rate()
        ),
    }
    for (reason, count) in &outcome.reasons {
        eprintln!("headend: {count} failed: {reason}");
    }
}
