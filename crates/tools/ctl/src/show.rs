//! `headend show ...`: each a request, and how its rows look on a terminal.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde_json::Value;

use crate::bgp;
use crate::subscriber;
use cli::Socket;
use cli::table::{Column, Shown, Table, block};
use control::request::{BgpWhose, Do, FilterName, Nothing, SubscriberFilter};

/// Show what the daemon holds and does.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    socket: Socket,
    /// One JSON object a line, each with its schema
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Tunnels
    Tunnels {
        /// Those that ended, and why, newest first
        #[arg(long)]
        ended: bool,
    },
    /// Sessions
    Sessions {
        /// Those that ended, and why, newest first
        #[arg(long)]
        ended: bool,
    },
    /// Subscribers: who is on line or coming, where, and what went through
    #[command(after_help = SUBSCRIBERS_HELP)]
    Subscribers {
        #[command(flatten)]
        filter: SubscriberFilter,
        /// Those that are not on line any more, and why, newest first
        #[arg(long, conflicts_with_all = ["name", "state", "tunnel"])]
        ended: bool,
    },
    /// Everything about one subscriber, and why it went before
    #[command(after_help = SUBSCRIBER_HELP)]
    Subscriber(subscriber::Args),
    /// Pools of addresses: how many are used and free, and who was refused
    Pools,
    /// RADIUS servers, and accounting records on their way
    Radius,
    /// Filters: their rules, and how many packets passed
    Filters,
    /// The lines of a filter, and how many packets each decided on
    Filter {
        /// Its Filter-Id
        name: String,
    },
    /// Peers by address
    Peers,
    /// Routes, and who they come from
    #[command(subcommand)]
    Bgp(bgp::Show),
    /// Everything that is counted: messages, discards, retransmissions
    Counters,
    /// Tunnels that ended, and why, newest first
    Ended,
    /// What the process has used and what it holds
    Server,
    /// The event loop
    #[command(subcommand)]
    Event(Event),
}

const SUBSCRIBERS_HELP: &str = "\
States: link (LCP, or asked who it is), asking (may it come in?), networks (addresses), up, ending.
IN is from the subscriber, OUT to it. --json has more, and one object a line.

Examples:
  headend show subscribers --state up
  headend show subscribers --name @example.net --tunnel 17
  headend show subscribers --ended";

const SUBSCRIBER_HELP: &str = "\
Somebody who is not on line but is remembered is shown by what became of it; the exit status is then 1, as
where nothing is known.

Examples:
  headend show subscriber alice
  headend show subscriber 10.64.0.7
  headend show subscriber --tunnel 17 --session 4 --json";

#[derive(Debug, Subcommand)]
enum Event {
    /// Watched descriptors, and what waiting for them costs
    Poll,
    /// The timer store, its next deadline, how late timers fired, and what is left of each hold time
    Timers(BgpWhose),
    /// Where the loop's time went, and its system calls
    Cpu,
    /// The cores that packets pass on, and what each did
    Shards,
}

impl What {
    /// What was typed, as a request.
    fn request(&self) -> Do {
        let nothing = Nothing {};
        match self {
            What::Tunnels { ended: false } => Do::ShowTunnels(nothing),
            What::Tunnels { ended: true } | What::Ended => Do::ShowEndedTunnels(nothing),
            What::Sessions { ended: false } => Do::ShowSessions(nothing),
            What::Sessions { ended: true } => Do::ShowEndedSessions(nothing),
            What::Subscribers { ended: true, .. } => Do::ShowEndedSubscribers(nothing),
            What::Subscribers { filter, .. } => Do::ShowSubscribers(filter.clone()),
            What::Subscriber(args) => Do::ShowSubscriber(args.request()),
            What::Pools => Do::ShowPools(nothing),
            What::Radius => Do::ShowRadius(nothing),
            What::Filters => Do::ShowFilters(nothing),
            What::Filter { name } => Do::ShowFilter(FilterName { name: name.clone() }),
            What::Peers => Do::ShowPeers(nothing),
            What::Bgp(show) => show.request(),
            What::Counters => Do::ShowCounters(nothing),
            What::Server => Do::ServerStats(nothing),
            What::Event(Event::Poll) => Do::ShowEventPoll(nothing),
            What::Event(Event::Timers(whose)) => Do::ShowEventTimers(whose.clone()),
            What::Event(Event::Cpu) => Do::ShowEventCpu(nothing),
            What::Event(Event::Shards) => Do::ShowEventShards(nothing),
        }
    }

    /// The schema whose headings stand even over no rows.
    fn schema(&self) -> &'static str {
        match self {
            What::Tunnels { ended: false } => "tunnel/1",
            What::Sessions { ended: false } => "session/1",
            What::Tunnels { .. } | What::Ended | What::Sessions { .. } => "ended/1",
            What::Subscribers { ended: false, .. } => "subscriber/1",
            What::Subscribers { .. } => "subscriber.ended/1",
            What::Subscriber(_) => "subscriber.detail/1",
            What::Pools => "pool/1",
            What::Radius => "radius.server/1",
            What::Filters => "filter/1",
            What::Filter { .. } => "filter.line/1",
            What::Peers => "peer/1",
            What::Bgp(show) => show.schema(),
            What::Counters => "counter/1",
            What::Server => "server/1",
            What::Event(Event::Poll) => "event.waits/1",
            What::Event(Event::Timers(_)) => "event.timers/1",
            What::Event(Event::Cpu) => "event.handler/1",
            What::Event(Event::Shards) => "event.shard/1",
        }
    }
}

/// Asks, and writes the rows as they come.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut client = args.socket.connect()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let request = args.what.request();
    if let What::Subscriber(wanted) = &args.what {
        return subscriber::run(&mut client, wanted, &request, args.json, &mut out);
    }
    if args.json {
        client.rows(&request, |row| Ok(writeln!(out, "{row}")?))?;
    } else {
        let mut tables = Tables::default();
        client.rows(&request, |row| {
            tables.push(&serde_json::from_str(row)?, &mut out)
        })?;
        tables.finish(args.what.schema(), &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Rows of one schema make a table; another schema starts the next.
#[derive(Default)]
struct Tables {
    open: Option<(String, Table)>,
    parts: usize,
}

impl Tables {
    fn push(&mut self, row: &Value, out: &mut impl Write) -> Result<()> {
        let schema = row["schema"].as_str().unwrap_or_default();
        if let Some((open, table)) = &mut self.open
            && open == schema
        {
            return Ok(table.push(row, out)?);
        }
        if let Some((_, table)) = self.open.take() {
            table.finish(out)?;
        }
        if self.parts > 0 {
            writeln!(out)?;
        }
        self.parts += 1;
        match look(schema) {
            Look::Block(columns) => block(columns, row, out)?,
            Look::Table(columns) => {
                let mut table = Table::new(columns);
                table.push(row, out)?;
                self.open = Some((schema.to_owned(), table));
            }
            Look::Unknown => writeln!(out, "{row}")?,
        }
        Ok(())
    }

    fn finish(mut self, schema: &str, out: &mut impl Write) -> Result<()> {
        if let Some((_, table)) = self.open.take() {
            table.finish(out)?;
        } else if let (0, Look::Table(columns)) = (self.parts, look(schema)) {
            Table::new(columns).finish(out)?;
        }
        Ok(())
    }
}

enum Look {
    Table(&'static [Column]),
    Block(&'static [Column]),
    /// Of a newer daemon.
    Unknown,
}

fn look(schema: &str) -> Look {
    match schema {
        "tunnel/1" => Look::Table(TUNNEL),
        "session/1" => Look::Table(SESSION),
        "subscriber/1" => Look::Table(SUBSCRIBER),
        "subscriber.ended/1" => Look::Table(subscriber::ENDED),
        "pool/1" => Look::Table(POOL),
        "pool.outside/1" => Look::Block(OUTSIDE),
        "radius.server/1" => Look::Table(RADIUS_SERVER),
        "radius/1" => Look::Block(RADIUS),
        "filter/1" => Look::Table(FILTER),
        "filter.line/1" => Look::Table(FILTER_LINE),
        "peer/1" => Look::Table(PEER),
        "ended/1" => Look::Table(ENDED),
        "bgp.summary/1" => Look::Block(bgp::SUMMARY),
        "bgp.neighbor/1" => Look::Table(bgp::NEIGHBOR),
        "bgp.neighbor.detail/1" => Look::Block(bgp::DETAIL),
        "bgp.route/1" => Look::Table(bgp::ROUTE),
        "bgp.path/1" => Look::Block(bgp::PATH),
        "bgp.rib/1" => Look::Block(bgp::RIB),
        "bgp.event/1" => Look::Table(bgp::EVENT),
        "bgp.hold/1" => Look::Table(bgp::HOLD),
        "emulate.waits/1" => Look::Table(bgp::EMULATED_WAITS),
        "emulate.handler/1" => Look::Table(bgp::EMULATED_HANDLER),
        "counter/1" => Look::Table(COUNTER),
        "event.descriptor/1" => Look::Table(DESCRIPTOR),
        "event.handler/1" => Look::Table(HANDLER),
        "event.shard/1" => Look::Table(SHARD),
        "event.syscall/1" => Look::Table(SYSCALL),
        "event.lateness/1" => Look::Table(LATENESS),
        "event.waits/1" => Look::Block(WAITS),
        "event.timers/1" => Look::Block(TIMERS),
        "server/1" => Look::Block(SERVER),
        _ => Look::Unknown,
    }
}

use Shown::{Age, Bytes, Number, Percent, Tenths, Text};

const TUNNEL: &[Column] = &[
    ("ID", "id", Number),
    ("REMOTE", "remote_id", Number),
    ("V", "version", Number),
    ("STATE", "state", Text),
    ("ROLE", "role", Text),
    ("PEER", "peer", Text),
    ("HOST", "host_name", Text),
    ("SESSIONS", "sessions", Number),
    ("UP", "up_s", Age),
    ("RESENT", "retransmissions", Number),
];
const SESSION: &[Column] = &[
    ("ID", "id", Number),
    ("REMOTE", "remote_id", Number),
    ("TUNNEL", "tunnel", Number),
    ("V", "version", Number),
    ("ROLE", "role", Text),
    ("STATE", "state", Text),
    ("CARRIES", "pseudowire", Text),
    ("UP", "up_s", Age),
    ("CALLED", "called_number", Text),
    ("SUBSCRIBER", "subscriber", Text),
    ("PHASE", "phase", Text),
    ("ADDRESS", "address", Text),
    ("IN", "octets_in", Bytes),
    ("OUT", "octets_out", Bytes),
];
const SUBSCRIBER: &[Column] = &[
    ("NAME", "name", Text),
    ("STATE", "state", Text),
    ("ADDRESS", "address", Text),
    ("TUNNEL", "tunnel", Number),
    ("SESSION", "session", Number),
    ("PEER", "peer", Text),
    ("UP", "up_s", Age),
    ("FILTER", "filter", Text),
    ("PACKETS IN", "packets_in", Number),
    ("IN", "octets_in", Bytes),
    ("PACKETS OUT", "packets_out", Number),
    ("OUT", "octets_out", Bytes),
    ("DROPPED", "dropped", Number),
];
const RADIUS_SERVER: &[Column] = &[
    ("SERVER", "name", Text),
    ("FOR", "purpose", Text),
    ("ADDRESS", "address", Text),
    ("STATE", "state", Text),
    ("RTT us", "rtt_us", Tenths),
    ("UNDER WAY", "outstanding", Number),
    ("SENT", "requests", Number),
    ("AGAIN", "retransmissions", Number),
    ("GIVEN UP", "given_up", Number),
    ("ACCEPTED", "accepts", Number),
    ("REJECTED", "rejects", Number),
    ("RECORDED", "recorded", Number),
    ("IGNORED", "ignored", Number),
    ("BECAUSE", "ignored_because", Text),
];
const RADIUS: &[Column] = &[
    ("requests under way", "outstanding", Number),
    ("requests that wait", "waiting", Number),
    ("requests not taken", "refused", Number),
    ("requests nobody answered", "failed", Number),
    ("datagrams from no server", "unknown_server", Number),
    ("records on their way", "records_held", Number),
    ("  at servers", "records_in_flight", Number),
    ("records that servers have", "records_delivered", Number),
    ("records no server wanted", "records_given_up", Number),
    ("records lost", "records_lost", Number),
    ("on disk", "store", Text),
    ("Disconnect-Requests", "disconnects", Text),
];
const FILTER: &[Column] = &[
    ("FILTER", "name", Text),
    ("LINE", "line", Number),
    ("IN FILE", "in_file", Text),
    ("RULES IN", "rules_in", Number),
    ("RULES OUT", "rules_out", Number),
    ("ACCEPTED", "accepted", Number),
    ("DENIED", "denied", Number),
];
const FILTER_LINE: &[Column] = &[
    ("LINE", "line", Number),
    ("DIRECTION", "direction", Text),
    ("HITS", "hits", Number),
    ("RULE", "text", Text),
];
const SHARD: &[Column] = &[
    ("SHARD", "shard", Number),
    ("CPU (S)", "cpu_s", Number),
    ("PACKETS IN", "packets_in", Number),
    ("OUT", "packets_out", Number),
    ("DISCARDED", "discarded", Number),
    ("LEFT TO THE FIRST", "left", Number),
    ("OF THOSE DROPPED", "left_dropped", Number),
    ("DATAGRAMS IN", "udp_received", Number),
    ("OUT", "udp_sent", Number),
    ("TUN READ", "tun_read", Number),
    ("WRITTEN", "tun_written", Number),
];
const POOL: &[Column] = &[
    ("POOL", "name", Text),
    ("SIZE", "size", Number),
    ("USED", "used", Number),
    ("FREE", "free", Number),
    ("REMEMBERED", "remembered", Number),
    ("LEFT OUT", "left_out", Number),
    ("TAKEN", "taken", Number),
    ("CAME BACK", "came_back", Number),
    ("REFUSED", "refused", Number),
    ("STICKY", "sticky", Text),
];
const OUTSIDE: &[Column] = &[
    ("fixed addresses outside of all pools", "used", Number),
    ("  of ranges that were taken away", "draining", Number),
    (
        "refused: the pool is not there",
        "refused_unknown_pool",
        Number,
    ),
    ("  somebody has the address", "refused_duplicate", Number),
    ("  it is the edge's own", "refused_reserved", Number),
    ("  too many are used", "refused_full", Number),
];
const PEER: &[Column] = &[
    ("ADDRESS", "address", Text),
    ("TUNNELS", "tunnels", Number),
    ("OPENED", "opened_total", Number),
];
const ENDED: &[Column] = &[
    ("TUNNEL", "tunnel", Number),
    ("SESSION", "session", Number),
    ("V", "version", Number),
    ("PEER", "peer", Text),
    ("AGO", "ended_s_ago", Age),
    ("REASON", "reason", Text),
];
const COUNTER: &[Column] = &[("COUNTER", "name", Text), ("VALUE", "value", Number)];
const DESCRIPTOR: &[Column] = &[
    ("FD", "fd", Number),
    ("OWNER", "owner", Text),
    ("INTEREST", "interest", Text),
    ("WAKE-UPS", "wakeups", Number),
];
const HANDLER: &[Column] = &[
    ("HANDLER", "name", Text),
    ("CALLS", "calls", Number),
    ("TOTAL us", "total_us", Tenths),
    ("MEAN us", "mean_us", Tenths),
    ("LONGEST us", "longest_us", Tenths),
];
const SYSCALL: &[Column] = &[("SYSTEM CALL", "name", Text), ("CALLS", "calls", Number)];
const LATENESS: &[Column] = &[
    ("LATE BY LESS THAN us", "below_us", Tenths),
    ("TIMERS", "timers", Number),
];
const WAITS: &[Column] = &[
    ("poller", "poller", Text),
    ("descriptor store", "descriptors", Text),
    ("watched", "watched", Number),
    ("waits", "waits", Number),
    ("waits with nothing ready", "empty", Number),
    ("waits a second", "waits_per_s", Tenths),
    ("ready a wait", "ready_per_wait", Tenths),
    ("ready to watched", "ready_to_watched", Percent),
    ("stale events left out", "stale", Number),
    ("descriptors refused", "refused", Number),
    ("time waited", "waited_s", Age),
    ("time busy", "busy_s", Age),
];
const TIMERS: &[Column] = &[
    ("timer store", "store", Text),
    ("armed", "armed", Number),
    ("next in ms", "next_ms", Tenths),
    ("next is", "next_timer", Text),
    ("wake-ups for timers", "fired", Number),
    ("late, mean us", "late_mean_us", Tenths),
    ("late, 99 % below us", "late_p99_us", Tenths),
    ("late, most us", "late_max_us", Tenths),
];
const SERVER: &[Column] = &[
    ("pid", "pid", Number),
    ("up", "uptime_s", Age),
    ("CPU, user us", "user_us", Number),
    ("CPU, system us", "system_us", Number),
    ("memory", "rss_bytes", Bytes),
    ("memory, most", "rss_max_bytes", Bytes),
    ("LNS at", "lns", Text),
    ("LAC at", "lac", Text),
    ("BGP at", "bgp", Text),
    ("tunnels", "tunnels", Number),
    ("  established", "established", Number),
    ("  opening", "opening", Number),
    ("  closing", "closing", Number),
    ("held for late duplicates", "held", Number),
    ("sessions", "sessions", Number),
    ("  established", "sessions_established", Number),
    ("peers", "peers", Number),
    ("timers", "timers", Number),
    ("sockets", "sockets", Number),
    ("control clients", "clients", Number),
];
