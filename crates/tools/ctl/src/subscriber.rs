//! `headend show subscriber`, and the arguments that select a subscriber in a command.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use cli::table::{Shown, Table, age, bits, columns, show};
use control::client::Client;
use control::request::{self, Do};
use control::rows::{Detail, EndedSubscriber};

/// The subscriber that a command is about.
#[derive(Clone, Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct SelectorArgs {
    /// The subscriber's name, its address, an address in a network behind it, or its account (Acct-Session-Id)
    #[arg(value_name = "NAME|ADDRESS|ACCOUNT", conflicts_with_all = ["tunnel", "session"])]
    who: Option<String>,
    /// The local id of its tunnel, with --session, in place of a name
    #[arg(long, value_name = "ID", requires = "session")]
    tunnel: Option<u32>,
    /// The local id of its session
    #[arg(long, value_name = "ID", requires = "tunnel")]
    session: Option<u32>,
    /// The L2TP version, if both versions use that tunnel id
    #[arg(long, value_name = "2|3", requires = "tunnel", value_parser = clap::value_parser!(u8).range(2..=3))]
    version: Option<u8>,
}

impl SelectorArgs {
    /// A subscriber by name or address.
    pub(super) fn of(who: &str) -> Self {
        Self {
            who: Some(who.to_owned()),
            tunnel: None,
            session: None,
            version: None,
        }
    }

    /// This selection as part of a request.
    pub(super) fn request(&self) -> request::SubscriberSelector {
        request::SubscriberSelector {
            who: self.who.clone(),
            tunnel: self.tunnel,
            session: self.session,
            version: self.version,
        }
    }

    /// This selection in words.
    pub(super) fn named(&self) -> String {
        match (&self.who, self.tunnel, self.session) {
            (Some(who), _, _) => who.escape_debug().to_string(),
            (None, tunnel, session) => format!(
                "tunnel {} session {}",
                tunnel.unwrap_or(0),
                session.unwrap_or(0)
            ),
        }
    }
}

/// `headend show subscriber`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SubscriberArgs {
    #[command(flatten)]
    who: SelectorArgs,
    /// Number of earlier sessions of this name to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    history: u32,
}

impl SubscriberArgs {
    /// The request of this command.
    pub(super) fn request(&self) -> request::ShowSubscriber {
        request::ShowSubscriber {
            of: self.who.request(),
            history: self.history,
        }
    }
}

/// Sends the request, and prints a page; the exit status is 1 if no such subscriber is connected.
pub(crate) fn run(
    client: &mut Client,
    args: &SubscriberArgs,
    request: &Do,
    json: bool,
    out: &mut impl Write,
) -> Result<ExitCode> {
    let mut found = 0;
    let mut last = None;
    let mut ended = Table::new(columns(&EndedSubscriber::TYPE));
    client.rows(request, |text| {
        let row: Value = serde_json::from_str(text)?;
        let is_detail = row["schema"] == Detail::SCHEMA;
        if json {
            writeln!(out, "{text}")?;
        } else if is_detail {
            if found > 0 {
                writeln!(out)?;
            }
            page(&row, out)?;
        } else {
            if last.is_none() {
                let heading = if found > 0 {
                    "\nearlier sessions"
                } else {
                    "disconnected"
                };
                writeln!(out, "{heading}")?;
            }
            ended.push(&row, out)?;
        }
        if is_detail {
            found += 1;
        } else {
            last.get_or_insert(row);
        }
        Ok(())
    })?;
    if !json && last.is_some() {
        ended.finish(out)?;
    }
    out.flush()?;
    if found > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let who = args.who.named();
    match last {
        Some(last) => eprintln!(
            "headend: {who} is not connected; its last session ended {} ago: {}",
            age(last["ended_s_ago"].as_f64().unwrap_or(0.0)),
            show(&last["reason"], Shown::Text)
        ),
        None => eprintln!("headend: {who} is not connected any more"),
    }
    Ok(ExitCode::FAILURE)
}

/// Width of the first column of a page.
const WIDTH: usize = 17;

/// The lines of a page. A line without a value is not printed.
pub(crate) struct Page<'a, W> {
    pub(crate) out: &'a mut W,
}

impl<W: Write> Page<'_, W> {
    pub(crate) fn line(&mut self, label: &str, value: &str) -> Result<()> {
        if !value.is_empty() {
            writeln!(self.out, "{label:<WIDTH$}{value}")?;
        }
        Ok(())
    }
}

fn page(row: &Value, out: &mut impl Write) -> Result<()> {
    let mut page = Page { out };
    let is_client = row["role"] == "client";
    page.line("subscriber", &text(&row["name"]))?;
    page.line("state", &state(row))?;
    page.line("address", &address(&row["ipv4"]))?;
    page.line("name servers", &list(&row["ipv4"]["dns"]))?;
    if let [Some(local), Some(peer)] = ["local", "peer"].map(|side| row["ipv6"][side].as_str()) {
        page.line("IPv6", &format!("{peer}, our end {local}"))?;
    }
    for (label, field) in [
        ("link prefix", "prefix"),
        ("delegated prefix", "delegated"),
        ("IPv6 address", "address"),
    ] {
        page.line(label, &optional(&row["ipv6"][field]))?;
    }
    page.line("networks", &list(&row["routes"]))?;
    page.line("missing", &list(&row["routes_missing"]))?;
    if let Some(mtu @ 1..) = row["mtu"].as_u64() {
        page.line("MTU", &mtu.to_string())?;
    }
    page.line("filter", &optional(&row["filter"]))?;
    queue(&mut page, &row["queue"])?;
    for (label, field) in [("queue down", "queue_down"), ("queue up", "queue_up")] {
        page.line(label, &queue_now(&row[field]))?;
    }
    page.line("pool", &optional(&row["ipv4"]["pool"]))?;
    page.line("account", &optional(&row["account"]))?;
    if !is_client {
        limits(&mut page, &row["times"])?;
    }
    for (label, packets, octets) in [
        ("in", "packets_in", "octets_in"),
        ("out", "packets_out", "octets_out"),
    ] {
        let octets = show(&row["traffic"][octets], Shown::Bytes);
        let packets = &row["traffic"][packets];
        page.line(label, &format!("{packets} packets, {octets}"))?;
    }
    let dropped = &row["traffic"]["dropped"];
    page.line("dropped", &format!("{dropped} packets"))?;
    tunnel(&mut page, row)?;
    if row["lns"].is_object() {
        // The LNS has its PPP link.
        return lns(&mut page, &row["lns"]);
    }
    if let Some(rtt) = row["echo_rtt_us"].as_f64() {
        page.line("round trip", &format!("{:.1} ms (LCP echo)", rtt / 1_000.0))?;
    }
    ppp(&mut page, &row["ppp"])
}

fn state(row: &Value) -> String {
    let times = &row["times"];
    let mut text = match times["up_s"].as_f64() {
        Some(up) if row["state"] == "up" => format!("up for {}", age(up)),
        Some(up) => format!("{}, up for {}", text(&row["state"]), age(up)),
        None => {
            let since = age(times["age_s"].as_f64().unwrap_or(0.0));
            format!("{} for {since}", text(&row["state"]))
        }
    };
    if row["role"] == "client" {
        text += ", client";
    }
    if let Some(why) = row["ending"].as_str() {
        text = format!("{text}: {}", why.escape_debug());
    }
    text
}

fn address(ipv4: &Value) -> String {
    match (ipv4["address"].as_str(), ipv4["other"].as_str()) {
        (Some(address), Some(other)) => format!("{address}, other end {other}"),
        (Some(address), None) => format!("{address}, IPCP not open"),
        (None, _) => String::new(),
    }
}

/// The rates, the template and the link of its queues, each with its source.
fn queue(page: &mut Page<impl Write>, queue: &Value) -> Result<()> {
    for (label, field, from) in [
        ("rate down", "rate_down_bps", "rate_down_from"),
        ("rate up", "rate_up_bps", "rate_up_from"),
        ("template", "template", "template_from"),
        ("link", "link", "link_from"),
    ] {
        let (value, from) = (&queue[field], queue[from].as_str());
        let text = match (value.as_u64(), value.is_null()) {
            (Some(rate), _) => bits(rate),
            (None, true) if from.is_some() => "no limit".to_owned(),
            (None, _) => optional(value),
        };
        let from = from.filter(|_| !text.is_empty());
        let from = from.map_or_else(String::new, |from| format!(" ({from})"));
        page.line(label, &format!("{text}{from}"))?;
    }
    Ok(())
}

/// What a queue holds and has done, in a line; empty without a queue.
fn queue_now(queue: &Value) -> String {
    if queue.is_null() {
        return String::new();
    }
    let octets = show(&queue["backlog_octets"], Shown::Bytes);
    let mut text = format!(
        "{} packets, {octets}; {} waited, {} dropped, {} marked",
        queue["backlog_packets"], queue["waited"], queue["dropped"], queue["marked"]
    );
    let millis = |field: &str| Some(queue[field].as_f64()? / 1_000.0);
    if let (Some(half), Some(most)) = (millis("delay_p50_us"), millis("delay_p99_us")) {
        text += &format!("; delay p50 {half:.1} ms, p99 {most:.1} ms");
    }
    text
}

/// The limits of its profile, a line each.
fn limits(page: &mut Page<impl Write>, times: &Value) -> Result<()> {
    let span = |field: &str| times[field].as_f64().map(age);
    let session = match (span("session_timeout_s"), span("session_left_s")) {
        (Some(all), Some(left)) => format!("{all}, {left} left"),
        (Some(all), None) => all,
        (None, _) => "none".into(),
    };
    page.line("session timeout", &session)?;
    page.line(
        "idle timeout",
        &span("idle_timeout_s").unwrap_or("none".into()),
    )?;
    let interim = span("interim_interval_s");
    page.line(
        "interim records",
        &interim.map_or(String::new(), |every| format!("every {every}")),
    )
}

fn tunnel(page: &mut Page<impl Write>, row: &Value) -> Result<()> {
    writeln!(page.out)?;
    let tunnel = &row["tunnel"];
    if tunnel.is_object() {
        let (id, remote, version) = (&tunnel["id"], &tunnel["remote_id"], &tunnel["version"]);
        let (state, role) = (text(&tunnel["state"]), text(&tunnel["role"]));
        page.line(
            "tunnel",
            &format!("{id} here, {remote} there, L2TPv{version}, {state}, we are the {role}"),
        )?;
        let host = optional(&tunnel["host_name"]);
        let name = if host.is_empty() {
            String::new()
        } else {
            format!(", host name {host}")
        };
        page.line("peer", &format!("{}{name}", text(&tunnel["peer"])))?;
    }
    let session = &row["session"];
    if session.is_object() {
        let (id, remote) = (&session["id"], &session["remote_id"]);
        let (role, state) = (text(&session["role"]), text(&session["state"]));
        let mut line = format!("{id} here, {remote} there, {role}, {state}");
        for (field, word) in [("calling_number", "from"), ("called_number", "to")] {
            let number = optional(&session[field]);
            if !number.is_empty() {
                line += &format!(", {word} {number}");
            }
        }
        if session["sequencing"] == true {
            line += ", data numbered";
        }
        page.line("session", &line)?;
    }
    Ok(())
}

fn lns(page: &mut Page<impl Write>, lns: &Value) -> Result<()> {
    let (address, state) = (text(&lns["address"]), text(&lns["state"]));
    let host = optional(&lns["host_name"]);
    let name = match host.is_empty() {
        true => String::new(),
        false => format!(", host name {host}"),
    };
    page.line("LNS", &format!("{address}, {state}{name}"))?;
    if lns["session"].is_number() {
        let (tunnel, session) = (&lns["tunnel"], &lns["session"]);
        let remote = &lns["remote_session"];
        let line = format!("tunnel {tunnel}, session {session} here, {remote} there");
        page.line("handed over in", &line)?;
    }
    Ok(())
}

fn ppp(page: &mut Page<impl Write>, ppp: &Value) -> Result<()> {
    let lcp = &ppp["lcp"];
    let state = |value: &Value| match value.as_str() {
        Some(state) => state.to_owned(),
        None => "not started".to_owned(),
    };
    page.line("LCP", &state(&lcp["state"]))?;
    for (label, side) in [
        ("  our side", &lcp["local"]),
        ("  peer's side", &lcp["peer"]),
    ] {
        page.line(label, &options(side))?;
    }
    page.line("authenticated", &authenticated(ppp))?;
    page.line("IPCP", &state(&ppp["ipcp"]))?;
    page.line("IPv6CP", &state(&ppp["ipv6cp"]))?;
    match ppp["echoes_unanswered"].as_u64() {
        Some(count @ 1..) => page.line("echo", &format!("{count} unanswered")),
        _ => Ok(()),
    }
}

/// "chap-md5, 1 attempt".
fn authenticated(ppp: &Value) -> String {
    if ppp["authenticated"] != true {
        return "no".into();
    }
    let method = ppp["lcp"]["local"]["authentication"].as_str();
    let method = method.unwrap_or("yes");
    match ppp["claims"].as_u64().unwrap_or(0) {
        0 => method.into(),
        1 => format!("{method}, 1 attempt"),
        attempts => format!("{method}, {attempts} attempts"),
    }
}

fn options(side: &Value) -> String {
    let mut parts = vec![format!("MRU {}", side["mru"])];
    if let Some(magic) = side["magic"].as_str() {
        parts.push(format!("magic {magic}"));
    }
    if let Some(way) = side["authentication"].as_str() {
        parts.push(format!("requires {way}"));
    }
    for (field, name) in [("pfc", "PFC"), ("acfc", "ACFC")] {
        if side[field] == true {
            parts.push(name.into());
        }
    }
    parts.join(", ")
}

/// A text for a terminal; `-` if it is absent.
fn text(value: &Value) -> String {
    show(value, Shown::Text)
}

/// The same; empty if it is absent.
fn optional(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.escape_debug().to_string(),
        None => String::new(),
    }
}

fn list(values: &Value) -> String {
    let all = values.as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<String> = all.iter().map(text).collect();
    texts.join(", ")
}
