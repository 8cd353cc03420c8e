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
    /// Change queues, filter, garden, times or networks of one subscriber at once
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
The change lasts until the session ends; --reset forgets what was set for the queues. It names one subscriber: a name
with several sessions is refused. If one part of a change is refused, nothing changes.

Examples:
  headend session set alice --rate-down 20mbit --rate-up 5mbit
  headend session set 10.64.0.7 --template gold --link access-7
  headend session set alice --rate-down none
  headend session set alice --reset
  headend session set alice --garden unpaid
  headend session set alice --garden none --filter residential --session-timeout 86400
  headend session set alice --route 10.1.0.0/16 --route 2001:db8:1::/48";

#[derive(Debug, clap::Args)]
struct Set {
    #[command(flatten)]
    who: SelectorArgs,
    /// The rate down: bits per second with a unit, or none
    #[arg(long, value_name = "RATE", value_parser = rate, required_unless_present_any = CHANGES)]
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
    /// First forget what earlier commands set for its queues
    #[arg(long)]
    reset: bool,
    /// Its filter, a name of the file of filters
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
    /// The walled garden to put it into, a name of [[garden]], or none to let it out
    #[arg(long, value_name = "NAME|none")]
    garden: Option<String>,
    /// The longest session, from its start, or none
    #[arg(long, value_name = "SECONDS|none", value_parser = seconds)]
    session_timeout: Option<u32>,
    /// The longest time without a data packet, or none
    #[arg(long, value_name = "SECONDS|none", value_parser = seconds)]
    idle_timeout: Option<u32>,
    /// The time between interim accounting records, or none
    #[arg(long, value_name = "SECONDS|none", value_parser = seconds)]
    interim_interval: Option<u32>,
    /// A network behind it; all that are given replace those of the same version of IP, and none removes all
    #[arg(long, value_name = "NETWORK|none")]
    route: Vec<String>,
    /// Print one JSON object, with its schema
    #[arg(long)]
    json: bool,
}

/// The flags of which one is needed, besides `--rate-down`.
const CHANGES: [&str; 10] = [
    "rate_up",
    "template",
    "link",
    "reset",
    "filter",
    "garden",
    "session_timeout",
    "idle_timeout",
    "interim_interval",
    "route",
];

/// A time in seconds; 0 for none.
fn seconds(text: &str) -> Result<u32, String> {
    match text {
        "none" => Ok(0),
        text => (text.parse()).map_err(|_| "write whole seconds, such as 3600, or none".to_owned()),
    }
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

impl Set {
    /// The networks to set: none of them for "none".
    fn routes(&self) -> Option<Vec<String>> {
        match self.route.as_slice() {
            [] => None,
            [none] if none == "none" => Some(Vec::new()),
            all => Some(all.to_vec()),
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
        filter: set.filter.clone(),
        garden: set.garden.clone(),
        session_timeout_s: set.session_timeout,
        idle_timeout_s: set.idle_timeout,
        interim_interval_s: set.interim_interval,
        routes: set.routes(),
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
        let queues = changed((&row["before"], &row["after"]), &QUEUE_FIELDS, queue_value);
        let policy = (&row["policy_before"], &row["policy_after"]);
        let policy = changed(policy, &POLICY_FIELDS, policy_value);
        let all = [queues, policy].concat();
        match all.is_empty() {
            true => println!("  nothing differs"),
            false => all.iter().for_each(|line| println!("{line}")),
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

/// The other parts that a command can change.
const POLICY_FIELDS: [(&str, &str); 6] = [
    ("filter", "filter"),
    ("garden", "garden"),
    ("session timeout", "session_timeout_s"),
    ("idle timeout", "idle_timeout_s"),
    ("interim interval", "interim_interval_s"),
    ("routes", "routes"),
];

/// A line for each field that differs.
fn changed(
    (before, after): (&Value, &Value),
    fields: &[(&str, &str)],
    value: fn(&Value) -> String,
) -> Vec<String> {
    let differ = fields
        .iter()
        .filter(|(_, field)| before[field] != after[field]);
    let lines = differ.map(|(label, field)| {
        let (before, after) = (value(&before[field]), value(&after[field]));
        format!("  {label:<9} {before} -> {after}")
    });
    lines.collect()
}

fn policy_value(value: &Value) -> String {
    match value {
        Value::Number(seconds) => format!("{} s", seconds.as_f64().unwrap_or(0.0)),
        Value::Array(all) if all.is_empty() => "none".to_owned(),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(|one| show(one, Shown::Text)).collect();
            all.join(", ")
        }
        other => queue_value(other),
    }
}

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
