//! `headend show ...`: each a request, and how its rows look on a terminal.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde_json::Value;

use crate::bgp;
use crate::subscriber;
use cli::Socket;
use cli::table::{Table, block, columns};
use control::request::{BgpWhose, Do, FilterName, Nothing, SubscriberFilter};
use control::rows::{self, Layout};

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

    /// The schema whose headings are printed even if there are no rows.
    fn schema(&self) -> &'static str {
        match self {
            What::Tunnels { ended: false } => rows::Tunnel::SCHEMA,
            What::Sessions { ended: false } => rows::Session::SCHEMA,
            What::Tunnels { .. } | What::Ended | What::Sessions { .. } => rows::Ended::SCHEMA,
            What::Subscribers { ended: false, .. } => rows::Subscriber::SCHEMA,
            What::Subscribers { .. } => rows::EndedSubscriber::SCHEMA,
            What::Subscriber(_) => rows::Detail::SCHEMA,
            What::Pools => rows::Pool::SCHEMA,
            What::Radius => rows::RadiusServer::SCHEMA,
            What::Filters => rows::Filter::SCHEMA,
            What::Filter { .. } => rows::FilterLine::SCHEMA,
            What::Peers => rows::Peer::SCHEMA,
            What::Bgp(show) => show.schema(),
            What::Counters => rows::Counter::SCHEMA,
            What::Server => rows::Server::SCHEMA,
            What::Event(Event::Poll) => rows::Waits::SCHEMA,
            What::Event(Event::Timers(_)) => rows::Timers::SCHEMA,
            What::Event(Event::Cpu) => rows::Handler::SCHEMA,
            What::Event(Event::Shards) => rows::Shard::SCHEMA,
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
        match rows::row_type(schema).map(|known| (known, known.layout)) {
            Some((known, Layout::Block)) => block(&columns(known), row, out)?,
            Some((known, Layout::Table)) => {
                let mut table = Table::new(columns(known));
                table.push(row, out)?;
                self.open = Some((schema.to_owned(), table));
            }
            // A newer daemon has rows that this client does not know.
            Some((_, Layout::Own)) | None => writeln!(out, "{row}")?,
        }
        Ok(())
    }

    fn finish(mut self, schema: &str, out: &mut impl Write) -> Result<()> {
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
