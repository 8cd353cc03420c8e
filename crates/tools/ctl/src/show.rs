//! `headend show ...`: sends a request, and prints its rows as tables, blocks or JSON. The columns are those that
//! `control::rows` declares.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde_json::Value;

use crate::bgp;
use crate::now;
use crate::subscriber;
use cli::Socket;
use cli::table::{Table, block, columns};
use control::request::{BgpWhose, Do, FilterName, Nothing, ShowWorst, SubscriberFilter};
use control::rows::{self, Layout};

/// Show the state of the daemon.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    #[command(flatten)]
    socket: Socket,
    /// Print one JSON object a line, each with its schema
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Tunnels
    Tunnels {
        /// List those that ended, with the reason, newest first
        #[arg(long)]
        ended: bool,
    },
    /// Sessions
    Sessions {
        /// List those that ended, with the reason, newest first
        #[arg(long)]
        ended: bool,
    },
    /// Subscribers: state, address, tunnel and traffic
    #[command(after_help = SUBSCRIBERS_HELP)]
    Subscribers {
        #[command(flatten)]
        filter: SubscriberFilter,
        /// List subscribers that have disconnected, with the reason, newest first
        #[arg(long, conflicts_with_all = ["name", "state", "tunnel", "limit", "sort", "reverse"])]
        ended: bool,
    },
    /// The subscribers with the most dropped packets, or the longest round trips of LCP echoes
    #[command(after_help = WORST_HELP)]
    Worst(ShowWorst),
    /// The state of the whole daemon: subscribers, tunnels, pools, RADIUS, traffic, the event loop, BGP
    #[command(after_help = now::HELP)]
    Now,
    /// Everything about one subscriber, and how its earlier sessions ended
    #[command(after_help = SUBSCRIBER_HELP)]
    Subscriber(subscriber::SubscriberArgs),
    /// The queues of a shaped subscriber: rates, backlog, drops, marks, delays, hosts
    #[command(after_help = QUEUE_HELP)]
    Queue(subscriber::SelectorArgs),
    /// Address pools: addresses used and free, leases and refusals
    Pools,
    /// RADIUS servers, and accounting records that are pending
    Radius,
    /// Filters: number of rules, packets accepted and denied
    Filters,
    /// The rules of a filter, and how many packets each decided on
    Filter {
        /// The filter's name (Filter-Id)
        name: String,
    },
    /// L2TP peers by address
    Peers,
    /// Ethernet interfaces of PPPoE
    Pppoe,
    /// Translation of addresses (NAT): port blocks, mappings, dropped packets, logs
    Nat {
        /// List the subscribers that are translated
        #[arg(long)]
        subscribers: bool,
    },
    /// BGP peers and routes
    #[command(subcommand)]
    Bgp(bgp::Show),
    /// All counters: messages, discards, retransmissions
    Counters,
    /// Tunnels that ended, with the reason, newest first
    Ended,
    /// CPU time and memory of the daemon, and counts of tunnels, sessions, timers
    Server,
    /// What the daemon wants of the kernel (addresses, routes), what the kernel has, and the difference
    Kernel,
    /// The event loop
    #[command(subcommand)]
    Event(Event),
}

const SUBSCRIBERS_HELP: &str = "\
States: link (LCP or authentication), asking (waiting for the users file or RADIUS), networks (addresses), up, ending.
IN is from the subscriber, OUT to it. --json prints further fields, one object a line.

Examples:
  headend show subscribers --state up
  headend show subscribers --name @example.net --tunnel 17
  headend show subscribers --sort rate --limit 20
  headend show subscribers --ended";

const WORST_HELP: &str = "\
Subscribers without a drop, or without the answer to an echo, are not listed.

Examples:
  headend show worst
  headend show worst --by round-trip --count 3 --json";

const SUBSCRIBER_HELP: &str = "\
For a subscriber that has disconnected, its earlier sessions are listed. The exit status is then 1, as for an unknown name.

Examples:
  headend show subscriber alice
  headend show subscriber 10.64.0.7
  headend show subscriber --tunnel 17 --session 4 --json";

const QUEUE_HELP: &str = "\
P50 and P99 are delays of the packets that waited; packets below the rate pass without waiting. The exit status is 1 if
the subscriber has no queues.

Examples:
  headend show queue alice
  headend show queue 10.64.0.7 --json";

#[derive(Debug, Subcommand)]
enum Event {
    /// Watched descriptors, and the cost of waiting for them
    Poll,
    /// The timer store, its next deadline, the lateness of timers, and the time left of each hold timer
    Timers(BgpWhose),
    /// Time spent in each handler, and system calls
    Cpu,
    /// The threads that forward packets, with the counters of each
    Shards,
}

impl What {
    /// The request of this command.
    fn request(&self) -> Do {
        let nothing = Nothing {};
        match self {
            What::Tunnels { ended: false } => Do::ShowTunnels(nothing),
            What::Tunnels { ended: true } | What::Ended => Do::ShowEndedTunnels(nothing),
            What::Sessions { ended: false } => Do::ShowSessions(nothing),
            What::Sessions { ended: true } => Do::ShowEndedSessions(nothing),
            What::Subscribers { ended: true, .. } => Do::ShowEndedSubscribers(nothing),
            What::Subscribers { filter, .. } => Do::ShowSubscribers(filter.clone()),
            What::Worst(wanted) => Do::ShowWorst(*wanted),
            What::Now => Do::ShowNow(nothing),
            What::Subscriber(args) => Do::ShowSubscriber(args.request()),
            What::Queue(who) => Do::ShowQueue(who.request()),
            What::Pools => Do::ShowPools(nothing),
            What::Radius => Do::ShowRadius(nothing),
            What::Filters => Do::ShowFilters(nothing),
            What::Filter { name } => Do::ShowFilter(FilterName { name: name.clone() }),
            What::Peers => Do::ShowPeers(nothing),
            What::Bgp(show) => show.request(),
            What::Counters => Do::ShowCounters(nothing),
            What::Server => Do::ServerStats(nothing),
            What::Kernel => Do::ShowKernel(nothing),
            What::Pppoe => Do::ShowPppoe(nothing),
            What::Nat { subscribers: false } => Do::ShowNat(nothing),
            What::Nat { subscribers: true } => Do::ShowNatSubscribers(nothing),
            What::Event(Event::Poll) => Do::ShowEventPoll(nothing),
            What::Event(Event::Timers(whose)) => Do::ShowEventTimers(whose.clone()),
            What::Event(Event::Cpu) => Do::ShowEventCpu(nothing),
            What::Event(Event::Shards) => Do::ShowEventShards(nothing),
        }
    }

    /// The schema whose headings are printed even if there are no rows.
    fn schema(&self) -> &'static str {
        match self {
            What::Tunnels { ended: false } => rows::Tunnel::SCHEMA,
            What::Sessions { ended: false } => rows::Session::SCHEMA,
            What::Tunnels { .. } | What::Ended | What::Sessions { .. } => rows::Ended::SCHEMA,
            What::Subscribers { ended: false, .. } => rows::Subscriber::SCHEMA,
            What::Worst(_) => rows::Subscriber::SCHEMA,
            What::Now => rows::Now::SCHEMA,
            What::Subscribers { .. } => rows::EndedSubscriber::SCHEMA,
            What::Subscriber(_) => rows::Detail::SCHEMA,
            What::Queue(_) => rows::Queue::SCHEMA,
            What::Pools => rows::Pool::SCHEMA,
            What::Radius => rows::RadiusServer::SCHEMA,
            What::Filters => rows::Filter::SCHEMA,
            What::Filter { .. } => rows::FilterLine::SCHEMA,
            What::Peers => rows::Peer::SCHEMA,
            What::Bgp(show) => show.schema(),
            What::Counters => rows::Counter::SCHEMA,
            What::Server => rows::Server::SCHEMA,
            What::Kernel => rows::Kernel::SCHEMA,
            What::Pppoe => rows::PppoeInterface::SCHEMA,
            What::Nat { subscribers: false } => rows::Nat::SCHEMA,
            What::Nat { subscribers: true } => rows::NatSubscriber::SCHEMA,
            What::Event(Event::Poll) => rows::Waits::SCHEMA,
            What::Event(Event::Timers(_)) => rows::Timers::SCHEMA,
            What::Event(Event::Cpu) => rows::Handler::SCHEMA,
            What::Event(Event::Shards) => rows::Shard::SCHEMA,
        }
    }
}

/// Sends the request, and prints the rows as they arrive.
pub fn run(args: &ShowArgs) -> Result<ExitCode> {
    let mut client = args.socket.connect()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let request = args.what.request();
    if let What::Subscriber(wanted) = &args.what {
        return subscriber::run(&mut client, wanted, &request, args.json, &mut out);
    }
    if args.json {
        client.rows(&request, |row| Ok(writeln!(out, "{row}")?))?;
    } else if let What::Now = &args.what {
        client.rows(&request, |row| {
            now::page(&serde_json::from_str(row)?, &mut out)
        })?;
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

/// The tables of an output: rows of one schema make a table, and another schema starts the next.
#[derive(Default)]
pub(crate) struct Tables {
    open: Option<(String, Table)>,
    parts: usize,
}

impl Tables {
    pub(crate) fn push(&mut self, row: &Value, out: &mut impl Write) -> Result<()> {
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
        match rows::row_type(schema).map(|known| (known, known.layout)) {
            Some((known, Layout::Block)) => block(&columns(known), row, out)?,
            Some((known, Layout::Table)) => {
                let mut table = Table::new(columns(known));
                table.push(row, out)?;
                self.open = Some((schema.to_owned(), table));
            }
            // A newer daemon has rows that this client does not know.
            Some((_, Layout::Own | Layout::Tree)) | None => writeln!(out, "{row}")?,
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, schema: &str, out: &mut impl Write) -> Result<()> {
        if let Some((_, table)) = self.open.take() {
            table.finish(out)?;
        } else if self.parts == 0
            && let Some(known) = rows::row_type(schema)
            && known.layout == Layout::Table
        {
            Table::new(columns(known)).finish(out)?;
        }
        Ok(())
    }
}
