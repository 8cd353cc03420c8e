//! `headend session create|delete|drop|answer|set`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::subscriber::SelectorArgs;
use cli::Socket;
use cli::table::{Shown, age, bits, show};
use control::client::{Client, refusal};
use control::reply::Reply;
use control::request::{Do, SessionCreate, SessionName, SessionSet, Wait, Wire};

/// Create, delete, drop, answer and shape sessions.
#[derive(Debug, clap::Args)]
pub struct SessionArgs {
    #[command(flatten)]
    socket: Socket,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create sessions in a tunnel
    Create(Create),
    /// Delete a session
    Delete(Name),
    /// Disconnect subscribers cleanly, with a Terminate-Request to each client
    #[command(after_help = DROP_HELP)]
    Drop(Drop),
    /// Change the rates, the template or the link of one subscriber at once
    #[command(after_help = SET_HELP)]
    Set(Set),
    /// Accept an outgoing call that the peer requested, if outgoing_calls is "ask"
    Answer(Name),
}

const DROP_HELP: &str = "\
A name selects all subscribers with that name. The exit status is 1 if none is connected, or if all are being
dropped already.

Examples:
  headend session drop alice
  headend session drop 10.64.0.7
  headend session drop --tunnel 17 --session 4";

const SET_HELP: &str = "\
The change lasts until the session ends, or until --reset. It names one subscriber: a name with several sessions is
refused. A rate above that of the subscriber's link is refused, and nothing changes.

Examples:
  headend session set alice --rate-down 20mbit --rate-up 5mbit
  headend session set 10.64.0.7 --template gold --link access-7
  headend session set alice --rate-down none
  headend session set alice --reset";

#[derive(Debug, clap::Args)]
struct Set {
    #[command(flatten)]
    who: SelectorArgs,
    /// The rate down: bits per second with a unit, or none
    #[arg(long, value_name = "RATE", value_parser = rate, required_unless_present_any = ["rate_up", "template", "link", "reset"])]
    rate_down: Option<u64>,
    /// The rate up
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate_up: Option<u64>,
    /// The template of its queues, a name of [[queue.template]]
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// Its shared link, a name of [[queue.link]]
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// First forget what earlier commands set for it
    #[arg(long)]
    reset: bool,
    /// Print one JSON object, with its schema
    #[arg(long)]
    json: bool,
}

/// A rate in bits per second; 0 for none.
fn rate(text: &str) -> Result<u64, String> {
    match text {
        "none" => Ok(0),
        text => settings::units::rate(text),
    }
}

#[derive(Debug, clap::Args)]
struct Drop {
    #[command(flatten)]
    who: SelectorArgs,
    /// Print one JSON object a line, each with its schema
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Create {
    /// The tunnel's local id
    #[arg(long, value_name = "ID")]
    tunnel: u32,
    /// The L2TP version, if both versions use that tunnel id
    #[arg(long, value_name = "2|3", value_parser = clap::value_parser!(u8).range(2..=3))]
    version: Option<u8>,
    /// Number of sessions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Ask the peer to place a call (OCRQ), instead of announcing one (ICRQ)
    #[arg(long)]
    outgoing: bool,
    /// What the session carries, in L2TPv3
    #[arg(long, value_enum, default_value = "ppp")]
    pseudowire: Wire,
    /// Called Number
    #[arg(long, value_name = "NUMBER", default_value = "")]
    called: String,
    /// Calling Number
    #[arg(long, value_name = "NUMBER", default_value = "")]
    calling: String,
    /// Do not wait until the sessions are up
    #[arg(long)]
    no_wait: bool,
    /// Print one JSON object a line for each session
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Name {
    /// The tunnel's local id
    #[arg(long, value_name = "ID")]
    tunnel: u32,
    /// The session's local id
    #[arg(long, value_name = "ID")]
    session: u32,
    /// The L2TP version, if both versions use that tunnel id
    #[arg(long, value_name = "2|3", value_parser = clap::value_parser!(u8).range(2..=3))]
    version: Option<u8>,
}

impl Create {
    fn request(&self) -> SessionCreate {
        SessionCreate {
            tunnel: self.tunnel,
            version: self.version,
            count: self.count,
            outgoing: self.outgoing,
            pseudowire: self.pseudowire,
            called: self.called.clone(),
            calling: self.calling.clone(),
            wait: if self.no_wait { Wait::None } else { Wait::Up },
        }
    }
}

impl Name {
    fn request(&self) -> SessionName {
        SessionName {
            tunnel: self.tunnel,
            session: self.session,
            version: self.version,
        }
    }
}

/// Runs the command.
pub fn run(args: &SessionArgs) -> Result<ExitCode> {
    let mut client = args.socket.connect()?;
    match &args.verb {
        Verb::Create(create) => return run_create(&mut client, create),
        Verb::Delete(name) => {
            client.call(&Do::SessionDelete(name.request()))?;
            println!("session {} deleted", name.session);
        }
        Verb::Drop(drop) => return run_drop(&mut client, drop),
        Verb::Set(set) => return run_set(&mut client, set),
        Verb::Answer(name) => {
            client.call(&Do::SessionAnswer(name.request()))?;
            println!("session {} answered", name.session);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run_set(client: &mut Client, set: &Set) -> Result<ExitCode> {
    let request = SessionSet {
        of: set.who.request(),
        rate_down_bps: set.rate_down,
        rate_up_bps: set.rate_up,
        template: set.template.clone(),
        link: set.link.clone(),
        reset: set.reset,
    };
    client.rows(&Do::SessionSet(request), |text| {
        if set.json {
            println!("{text}");
            return Ok(());
        }
        let row: Value = serde_json::from_str(text)?;
        let name = show(&row["name"], Shown::Text);
        println!(
            "{name}: tunnel {} session {}",
            row["tunnel"], row["session"]
        );
        let mut changes = 0;
        for (label, field) in QUEUE_FIELDS {
            let (before, after) = (&row["before"][field], &row["after"][field]);
            if before != after {
                changes += 1;
                let (before, after) = (queue_value(before), queue_value(after));
                println!("  {label:<9} {before} -> {after}");
            }
        }
        if changes == 0 {
            println!("  nothing differs");
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The parts of a subscriber's queues, each with its label.
const QUEUE_FIELDS: [(&str, &str); 4] = [
    ("rate down", "rate_down_bps"),
    ("rate up", "rate_up_bps"),
    ("template", "template"),
    ("link", "link"),
];

fn queue_value(value: &Value) -> String {
    match value.as_u64() {
        Some(rate) => bits(rate),
        None if value.is_null() => "none".to_owned(),
        None => show(value, Shown::Text),
    }
}

fn run_drop(client: &mut Client, drop: &Drop) -> Result<ExitCode> {
    let mut dropped = false;
    let rows = client.rows(&Do::SessionDrop(drop.who.request()), |text| {
        let row: Value = serde_json::from_str(text)?;
        let ends = row["outcome"] == "ending";
        dropped |= !ends;
        if drop.json {
            println!("{text}");
            return Ok(());
        }
        let name = show(&row["name"], Shown::Text);
        let mut line = format!(
            "{name}: tunnel {} session {}",
            row["tunnel"], row["session"]
        );
        if let Some(address) = row["address"].as_str() {
            line += &format!(", {address}");
        }
        line += &match row["up_s"].as_f64() {
            Some(up) => format!(", up for {}", age(up)),
            None => ", not yet up".into(),
        };
        line += &match row["ending"].as_str() {
            Some(reason) if ends => format!("; is being dropped already: {reason}"),
            _ if ends => "; is being dropped already".into(),
            _ => "; dropped".into(),
        };
        println!("{line}");
        Ok(())
    })?;
    if rows == 0 {
        bail!("{} is not connected any more", drop.who.named());
    }
    Ok(if dropped {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run_create(client: &mut Client, create: &Create) -> Result<ExitCode> {
    let id = client.queue(&Do::SessionCreate(create.request()));
    client.flush()?;
    let mut failed = 0;
    loop {
        let Some(reply) = client.next(None)? else {
            continue;
        };
        if let Some(reason) = refusal(&reply) {
            bail!("{reason}");
        }
        if create.json && (reply.session.is_some() || reply.up.is_some()) {
            println!("{}", created(create, &reply));
            failed += u32::from(reply.up == Some(false));
        } else {
            failed += report(create, &reply);
        }
        if reply.id == id && reply.end {
            return Ok(if failed == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
    }
}

/// A reply as one object, `session.created/1`.
fn created(create: &Create, reply: &Reply) -> Value {
    json!({
        "schema": "session.created/1",
        "tunnel": create.tunnel,
        "session": reply.session,
        "up": reply.up,
        "ms": reply.ms,
        "reason": reply.reason,
    })
}

/// Prints a reply; returns the number of sessions that failed.
fn report(create: &Create, reply: &Reply) -> u32 {
    match (reply.session, reply.up) {
        (session, Some(false)) => {
            let reason = reply.reason.as_deref().unwrap_or("no reason given");
            let session = session.unwrap_or(0);
            eprintln!("headend: session {session} failed: {reason}");
            return 1;
        }
        (Some(session), Some(true)) => println!("tunnel {} session {session} up", create.tunnel),
        (Some(session), None) => println!("tunnel {} session {session} started", create.tunnel),
        (None, _) => {}
    }
    0
}
