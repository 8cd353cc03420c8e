//! `headend nat who|forward`: who has, or had, an external port; port forwarding.
//!
//! A question about the past reads the store's directory itself, so it needs no daemon if `--store` names the directory, and
//! read permission for the directory in any case. A question about now goes to the daemon.

use std::io::{self, BufWriter, Write};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use natlog::{Kind, Reader};

use crate::date;
use crate::show::Tables;
use cli::Socket;
use control::request::{Do, NatForward, NatForwardName, NatPort, Nothing};
use control::rows::{self, NatWho};

/// Find out who has an external address and port, and forward ports.
#[derive(Debug, clap::Args)]
pub struct NatArgs {
    #[command(flatten)]
    socket: Socket,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Name the subscriber that has, or had, an external address and port
    #[command(after_help = WHO_HELP)]
    Who(Who),
    /// Forward ports to subscribers
    #[command(subcommand)]
    Forward(Forward),
}

#[derive(Debug, clap::Args)]
struct Who {
    /// The external address and port, such as 203.0.113.1:40000
    #[arg(value_parser = control::request::address_and_port)]
    external: SocketAddrV4,
    /// At this time: RFC 3339, or @SECONDS since 1970 [default: now]
    #[arg(num_args = 2, value_names = ["at", "TIME"])]
    at: Vec<String>,
    /// The store to search [default: the running daemon's]
    #[arg(long, value_name = "DIRECTORY")]
    store: Option<PathBuf>,
    /// Print one JSON object a line, each with its schema
    #[arg(long)]
    json: bool,
}

const WHO_HELP: &str = "\
A time without an offset is in UTC. The exit status is 1 if nobody has the port.

Examples:
  headend nat who 203.0.113.1:40000
  headend nat who 203.0.113.1:40000 at 2026-11-23T12:00:00Z
  headend nat who 203.0.113.1:40000 at 2026-11-23T13:00:00+01:00 --json
  headend nat who 203.0.113.1:40000 at @1795435200 --store /srv/archive/nat";

#[derive(Debug, Subcommand)]
enum Forward {
    /// Forward a port to a subscriber, or renew that
    #[command(after_help = ADD_HELP)]
    Add(Add),
    /// End a port forwarding
    Del(Del),
    /// List forwarded ports
    List(List),
}

const ADD_HELP: &str = "\
Ports below [nat] first_port of any external address can be forwarded, and ports in the subscriber's own port blocks.
Without an external port, the daemon chooses one of the subscriber's ports, which is forwarded until it disconnects.

Examples:
  headend nat forward add tcp 100.64.0.7:8080
  headend nat forward add tcp 100.64.0.7:8080 203.0.113.1:80
  headend nat forward add udp 100.64.0.7:3074 --lifetime 3600";

#[derive(Debug, clap::Args)]
struct Add {
    #[command(flatten)]
    wish: NatForward,
    /// Print one JSON object, with its schema
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Del {
    #[command(flatten)]
    name: NatForwardName,
    /// Print one JSON object, with its schema
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct List {
    /// Print one JSON object a line, each with its schema
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The daemon does not answer or refuses, or the store cannot be read.
pub fn run(args: &NatArgs) -> Result<ExitCode> {
    match &args.verb {
        Verb::Who(who) => run_who(&args.socket, who),
        Verb::Forward(forward) => {
            let (request, json) = match forward {
                Forward::Add(add) => (Do::NatForwardAdd(add.wish), add.json),
                Forward::Del(del) => (Do::NatForwardDelete(del.name), del.json),
                Forward::List(list) => (Do::ShowNatForwards(Nothing {}), list.json),
            };
            run_forward(&args.socket, &request, json)
        }
    }
}

fn run_forward(socket: &Socket, request: &Do, json: bool) -> Result<ExitCode> {
    let mut client = socket.connect()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut tables = Tables::default();
    client.rows(request, |row| match json {
        true => Ok(writeln!(out, "{row}")?),
        false => tables.push(&serde_json::from_str(row)?, &mut out),
    })?;
    if !json {
        tables.finish(rows::NatForward::SCHEMA, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn run_who(socket: &Socket, who: &Who) -> Result<ExitCode> {
    let at_ms = match who.at.as_slice() {
        [] => None,
        [word, time] if word == "at" => Some(date::parse(time).map_err(anyhow::Error::msg)?),
        [word, _] => bail!("\"{word}\" is not expected here; write \"at TIME\""),
        _ => bail!("write \"at TIME\""),
    };
    let found = match (at_ms, &who.store) {
        (Some(at_ms), Some(store)) => vec![then(store, who.external, at_ms)?],
        (None, Some(_)) => bail!("--store needs a time: write \"at TIME\""),
        (None, None) => now(socket, who.external)?,
        (Some(at_ms), None) => asked(socket, who.external, at_ms)?,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    for row in &found {
        match who.json {
            true => writeln!(out, "{}", serde_json::to_string(row)?)?,
            false => writeln!(out, "{}", sentence(row))?,
        }
    }
    out.flush()?;
    Ok(match found.iter().any(|row| row.by.is_some()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The daemon's answer about now.
fn now(socket: &Socket, external: SocketAddrV4) -> Result<Vec<NatWho>> {
    let mut found = Vec::new();
    socket
        .connect()?
        .rows(&Do::NatWho(NatPort { external }), |row| {
            found.push(serde_json::from_str(row)?);
            Ok(())
        })?;
    Ok(found)
}

/// The answer about a time, from the store that the daemon names. Shares of the deterministic mode are in no store: the
/// daemon's configuration has them.
fn asked(socket: &Socket, external: SocketAddrV4, at_ms: u64) -> Result<Vec<NatWho>> {
    let answers = now(socket, external)?;
    let share = answers
        .iter()
        .find(|row| row.by.as_deref() == Some("share"));
    if let Some(share) = share {
        return Ok(vec![NatWho {
            name: None,
            at_s: seconds(at_ms),
            ..share.clone()
        }]);
    }
    let store = answers.first().and_then(|row| row.store.as_deref());
    let store = store.context(
        "the daemon has no store of port blocks; give [nat.log] store, or name a store with --store",
    )?;
    Ok(vec![then(Path::new(store), external, at_ms)?])
}

/// The answer of a store about a time.
fn then(store: &Path, external: SocketAddrV4, at_ms: u64) -> Result<NatWho> {
    let reader = Reader::new(store);
    let found = reader.who_named(*external.ip(), external.port(), at_ms)?;
    let (entry, name) = found.unzip();
    let name = name.flatten();
    // The record of a block that is carried on from an earlier segment has the time of its segment.
    let since = entry.filter(|entry| entry.kind == Kind::Allocated);
    Ok(NatWho {
        schema: NatWho::SCHEMA.into(),
        external,
        by: entry.map(|_| "block".to_owned()),
        name: name.map(|name| String::from_utf8_lossy(&name).into_owned()),
        inside: entry.map(|entry| entry.inside),
        protocol: None,
        first_port: entry.map(|entry| entry.first),
        last_port: entry.map(|entry| entry.last),
        at_s: seconds(at_ms),
        since_s: since.map(|entry| seconds(entry.at_ms)),
        store: Some(store.to_string_lossy().into_owned()),
    })
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

fn sentence(row: &NatWho) -> String {
    let time = |seconds: f64| date::show((seconds * 1000.0).round() as u64);
    let head = format!("{} at {}:", row.external, time(row.at_s));
    let (Some(by), Some(inside)) = (row.by.as_deref(), row.inside) else {
        return format!("{head} nobody");
    };
    let name = match row.name.as_deref() {
        Some(name) => format!("{} ({inside})", name.escape_debug()),
        None => inside.to_string(),
    };
    let ports = match (by, row.first_port, row.last_port) {
        ("forward", ..) => format!("forwarded {}", row.protocol.as_deref().unwrap_or("port")),
        (_, Some(first), Some(last)) => format!("ports {first}-{last}"),
        _ => "ports".to_owned(),
    };
    let since = row.since_s.map(|since| format!(" since {}", time(since)));
    let by = match by {
        "share" => " (deterministic)",
        _ => "",
    };
    format!("{head} {name}, {ports}{by}{}", since.unwrap_or_default())
}
