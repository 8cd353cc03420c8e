//! The connections to the daemon and to the shaper: carries out what [`Want`] asks for, and connects again after a loss.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use control::client::{Client, refusal};
use control::reply::Code;
use control::request::{BgpWhose, Do, HistoryFilter, Nothing, ShowSubscriber, SubscriberSelector};
use control::rows::{self, QosNodeRow, QosRun};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::rows::{
    Answer, LIST_MAX, Listing, LoopRows, Outcome, PeerRows, Report, Subscriber, Want, Who,
};
use crate::view::View;

/// How long a reply may take. A daemon that takes longer counts as gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Rows of a reply that are read; the others are skipped. A speaker may have 10,000 neighbours and more.
const ROWS_MAX: usize = 20_000;

/// Ended sessions that a subscriber's page lists.
const ENDED_MAX: u32 = 20;

/// The daemon, and the shaper.
pub(crate) struct Source {
    daemon: Place,
    shaper: Place,
}

/// A socket, and the connection to it.
struct Place {
    path: PathBuf,
    client: Option<Client>,
    is_shaper: bool,
}

/// Why there is no reply.
enum Trouble {
    Refused(String),
    Gone(String),
}

/// The verb of a shaper.
#[derive(Serialize)]
#[serde(tag = "do")]
enum Shaper {
    #[serde(rename = "qos.show")]
    Show(Nothing),
}

/// The verb that lists subscribers, with a limit.
#[derive(Serialize)]
#[serde(tag = "do")]
enum List<'a> {
    #[serde(rename = "show.subscribers")]
    First {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tunnel: Option<u32>,
        limit: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        sort: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reverse: Option<bool>,
    },
}

impl Source {
    /// Sockets without a connection.
    pub(crate) fn new(daemon: &Path, shaper: &Path) -> Self {
        let place = |path: &Path, is_shaper| Place {
            path: path.to_owned(),
            client: None,
            is_shaper,
        };
        Self {
            daemon: place(daemon, false),
            shaper: place(shaper, true),
        }
    }

    /// Connects to what `view` shows.
    ///
    /// # Errors
    /// Nothing answers there; the message has a remedy.
    pub(crate) fn connect(&mut self, view: View) -> Result<()> {
        match view {
            View::Queues => self.shaper.open()?,
            _ => self.daemon.open()?,
        };
        Ok(())
    }

    /// Asks for each item of `wants` in turn. Once a connection is gone, nothing else is asked of it in this round.
    pub(crate) fn poll(&mut self, view: View, wants: Vec<Want>) -> Report {
        let mut outcomes = Vec::new();
        let mut gone: Option<String> = None;
        for want in wants {
            if let Some(reason) = &gone {
                outcomes.push((want, Outcome::Gone(reason.clone())));
                continue;
            }
            let outcome = match self.ask(&want) {
                Ok(answer) => Outcome::Answer(answer),
                Err(Trouble::Refused(reason)) => Outcome::Refused(reason),
                Err(Trouble::Gone(reason)) => {
                    gone = Some(reason.clone());
                    Outcome::Gone(reason)
                }
            };
            outcomes.push((want, outcome));
        }
        Report { view, outcomes }
    }

    fn ask(&mut self, want: &Want) -> Result<Answer, Trouble> {
        let daemon = &mut self.daemon;
        match want {
            Want::Now => daemon
                .one(&Do::ShowNow(Nothing {}))
                .map(|now| Answer::Now(Box::new(now))),
            Want::History => {
                let filter = HistoryFilter {
                    series: None,
                    step_s: Some(1),
                };
                daemon.all(&Do::ShowHistory(filter)).map(Answer::History)
            }
            Want::Subscribers(listing) => daemon.subscribers(listing),
            Want::Subscriber(who) => daemon.subscriber(who),
            Want::Loop => daemon.event_loop(),
            Want::Peers => daemon.peers(),
            Want::Queues => self.shaper.queues(),
        }
    }
}

impl Place {
    /// The connection, opened if there is none.
    fn open(&mut self) -> Result<&mut Client> {
        let client = match self.client.take() {
            Some(client) => client,
            None if self.is_shaper => self.open_shaper()?,
            None => Client::connect(&self.path)?,
        };
        Ok(self.client.insert(client))
    }

    fn open_shaper(&self) -> Result<Client> {
        let shown = self.path.display();
        let stream = UnixStream::connect(&self.path).map_err(|error| {
            anyhow::anyhow!(
                "no shaper at {shown}: {error}; start one with \"headend qos run\", or name its socket with --qos-socket PATH"
            )
        })?;
        Ok(Client::new(stream))
    }

    /// Sends a request and passes each row of the reply to `each`.
    fn rows(
        &mut self,
        what: &impl Serialize,
        mut each: impl FnMut(&str) -> serde_json::Result<()>,
    ) -> Result<(), Trouble> {
        let gone = |error: anyhow::Error| Trouble::Gone(format!("{error:#}"));
        let client = self.open().map_err(gone)?;
        let outcome = exchange(client, what, &mut each);
        if matches!(outcome, Err(Trouble::Gone(_))) {
            self.client = None;
        }
        outcome
    }

    fn one<T: DeserializeOwned>(&mut self, what: &impl Serialize) -> Result<T, Trouble> {
        let mut all = self.all(what)?;
        all.pop()
            .ok_or_else(|| Trouble::Refused("the daemon answered without a row".into()))
    }

    fn all<T: DeserializeOwned>(&mut self, what: &impl Serialize) -> Result<Vec<T>, Trouble> {
        let mut all = Vec::new();
        self.rows(what, |row| {
            all.push(serde_json::from_str(row)?);
            Ok(())
        })?;
        Ok(all)
    }

    fn subscribers(&mut self, listing: &Listing) -> Result<Answer, Trouble> {
        let request = List::First {
            name: listing.name.as_deref(),
            state: listing.state.as_deref(),
            tunnel: listing.tunnel,
            limit: LIST_MAX,
            sort: listing.sort.map(|(order, _)| order),
            reverse: listing.sort.map(|(_, is_reversed)| is_reversed),
        };
        let mut found: Vec<Subscriber> = self.all(&request)?;
        found.truncate(LIST_MAX as usize);
        Ok(Answer::Subscribers(listing.clone(), found))
    }

    /// The session that was opened, or once it has ended, a later session of the same name.
    fn subscriber(&mut self, who: &Who) -> Result<Answer, Trouble> {
        let session = SubscriberSelector {
            tunnel: Some(who.key.tunnel),
            session: Some(who.key.session),
            ..SubscriberSelector::default()
        };
        let name = SubscriberSelector {
            who: Some(who.name.clone()),
            ..SubscriberSelector::default()
        };
        let selectors = [Some(session), (!who.name.is_empty()).then_some(name)];
        for of in selectors.into_iter().flatten() {
            let history = ENDED_MAX;
            let rows: Vec<Value> =
                match self.all(&Do::ShowSubscriber(ShowSubscriber { of, history })) {
                    Ok(rows) => rows,
                    // The daemon knows no such subscriber.
                    Err(Trouble::Refused(_)) => continue,
                    Err(gone) => return Err(gone),
                };
            let is_detail = |row: &Value| row["schema"] == rows::Detail::SCHEMA;
            let (details, ended): (Vec<Value>, Vec<Value>) = rows.into_iter().partition(is_detail);
            return Ok(Answer::Subscriber(
                who.key,
                details.into_iter().next(),
                ended,
            ));
        }
        Ok(Answer::Subscriber(who.key, None, Vec::new()))
    }

    fn event_loop(&mut self) -> Result<Answer, Trouble> {
        let mut found = LoopRows::default();
        for request in [
            Do::ShowEventCpu(Nothing {}),
            Do::ShowEventTimers(BgpWhose::default()),
            Do::ShowEventShards(Nothing {}),
        ] {
            self.rows(&request, |row| {
                let value: Value = serde_json::from_str(row)?;
                match value["schema"].as_str() {
                    Some(rows::Handler::SCHEMA) => found.handlers.push(read(value)?),
                    Some(rows::Overrun::SCHEMA) => found.overruns.push(read(value)?),
                    Some(rows::Timers::SCHEMA) => found.timers = Some(read(value)?),
                    Some(rows::Shard::SCHEMA) => found.shards.push(read(value)?),
                    _ => {}
                }
                Ok(())
            })?;
        }
        Ok(Answer::Loop(found))
    }

    fn peers(&mut self) -> Result<Answer, Trouble> {
        let mut found = PeerRows::default();
        self.rows(&Do::ShowBgpSummary(BgpWhose::default()), |row| {
            let value: Value = serde_json::from_str(row)?;
            match value["schema"].as_str() {
                Some(rows::BgpSummary::SCHEMA) => found.summary = read(value)?,
                Some(rows::BgpNeighbor::SCHEMA) => found.neighbors.push(read(value)?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(Answer::Peers(found))
    }

    fn queues(&mut self) -> Result<Answer, Trouble> {
        let mut run: Option<QosRun> = None;
        self.rows(&Shaper::Show(Nothing {}), |row| {
            let Some(run) = &mut run else {
                run = Some(serde_json::from_str(row)?);
                return Ok(());
            };
            let QosNodeRow { node, .. } = serde_json::from_str(row)?;
            let way = match node.way.as_str() {
                "up" => &mut run.up,
                _ => &mut run.down,
            };
            way.nodes.push(node);
            Ok(())
        })?;
        let run =
            run.ok_or_else(|| Trouble::Refused("the shaper answered without a row".into()))?;
        Ok(Answer::Queues(Box::new(run)))
    }
}

fn read<T: DeserializeOwned>(value: Value) -> serde_json::Result<T> {
    serde_json::from_value(value)
}

/// Sends a request and passes each row of the reply to `each`. After a row that cannot be read, the others are skipped,
/// so that the connection stays in step.
fn exchange(
    client: &mut Client,
    what: &impl Serialize,
    each: &mut impl FnMut(&str) -> serde_json::Result<()>,
) -> Result<(), Trouble> {
    let gone = |error: anyhow::Error| Trouble::Gone(format!("{error:#}"));
    let id = client.queue(what);
    client.flush().map_err(gone)?;
    let start = Instant::now();
    let mut fault = None;
    let mut count = 0;
    loop {
        let left = PATIENCE.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(silent());
        }
        let Some(reply) = client.next(Some(left)).map_err(gone)? else {
            return Err(silent());
        };
        if reply.id != id {
            // Id 0: the daemon refuses the connection itself, and closes it.
            match refusal(&reply) {
                Some(reason) => return Err(Trouble::Gone(reason)),
                None => continue,
            }
        }
        if let Some(reason) = refusal(&reply) {
            let code = reply.error.as_ref().map(|error| error.code);
            // Our requests are well-formed, so a daemon that cannot read one does not know it.
            let is_another = matches!(code, Some(Code::BadRequest | Code::Version));
            return Err(Trouble::Refused(match is_another {
                true => format!("the daemon is of another version than this program: {reason}"),
                false => reason,
            }));
        }
        if let Some(row) = reply.row
            && fault.is_none()
            && count < ROWS_MAX
        {
            count += 1;
            fault = each(row.get()).err();
        }
        if reply.end {
            break;
        }
    }
    match fault {
        None => Ok(()),
        Some(error) => Err(Trouble::Refused(format!(
            "the daemon is of another version than this program: its row has {error}"
        ))),
    }
}

fn silent() -> Trouble {
    Trouble::Gone(format!(
        "the daemon has not replied for {} s",
        PATIENCE.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use super::*;

    /// The outcome of a request for the peers, to which a daemon answers with these lines; `ID` is the request's id.
    fn outcome(answer: &'static str) -> Outcome {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let daemon = std::thread::spawn(move || {
            let mut request = String::new();
            BufReader::new(&theirs).read_line(&mut request).unwrap();
            let value: Value = serde_json::from_str(&request).unwrap();
            let text = answer.replace("ID", &value["id"].to_string());
            // A client that has seen enough closes the connection.
            let _ = (&theirs).write_all(text.as_bytes());
        });
        let mut source = Source::new(Path::new("/nowhere/daemon"), Path::new("/nowhere/shaper"));
        source.daemon.client = Some(Client::new(ours));
        let mut report = source.poll(View::Peers, vec![Want::Peers, Want::Now]);
        daemon.join().unwrap();
        let (_, now) = report.outcomes.pop().unwrap();
        // The daemon answers one request and leaves.
        assert!(matches!(now, Outcome::Gone(_)), "{now:?}");
        report.outcomes.pop().unwrap().1
    }

    #[test]
    fn rows_of_other_schemas_are_left_out() {
        let found = outcome(
            "{\"v\":1,\"id\":ID,\"row\":{\"schema\":\"bgp.summary/1\",\"asn\":7}}\n\
             {\"v\":1,\"id\":ID,\"row\":{\"schema\":\"later/1\"}}\n\
             {\"v\":1,\"id\":ID,\"row\":{\"schema\":\"bgp.neighbor/1\",\"address\":\"192.0.2.1\",\"later\":5}}\n\
             {\"v\":1,\"id\":ID,\"end\":true,\"rows\":3}\n",
        );
        let Outcome::Answer(Answer::Peers(peers)) = found else {
            panic!("{found:?}");
        };
        assert_eq!((peers.summary.asn, peers.neighbors.len()), (7, 1));
    }

    #[test]
    fn another_version_is_named_and_a_plain_refusal_is_not_one() {
        let refused = |answer| match outcome(answer) {
            Outcome::Refused(reason) => reason,
            other => panic!("{other:?}"),
        };
        let another = "the daemon is of another version than this program: ";
        let old = refused(
            "{\"v\":1,\"id\":ID,\"ok\":false,\"error\":{\"code\":\"bad-request\",\"message\":\"what?\"}}\n",
        );
        assert_eq!(old, format!("{another}what?"));
        let no = refused(
            "{\"v\":1,\"id\":ID,\"ok\":false,\"error\":{\"code\":\"refused\",\"message\":\"no BGP\"}}\n",
        );
        assert_eq!(no, "no BGP");
        let row = refused(
            "{\"v\":1,\"id\":ID,\"row\":{\"schema\":\"bgp.summary/1\",\"asn\":\"x\"}}\n\
             {\"v\":1,\"id\":ID,\"row\":5}\n{\"v\":1,\"id\":ID,\"end\":true,\"rows\":2}\n",
        );
        assert!(row.starts_with(another) && row.contains("u32"), "{row}");
    }

    #[test]
    fn nonsense_and_a_full_daemon_end_the_connection() {
        for (answer, reason) in [
            ("not json\n", "not of this protocol"),
            ("{\"v\":1,\"id\":ID", "closed"),
            (
                "{\"v\":1,\"id\":0,\"ok\":false,\"error\":{\"code\":\"limit\",\"message\":\"too many clients\"}}\n",
                "too many clients",
            ),
        ] {
            let found = outcome(answer);
            let is_so = matches!(&found, Outcome::Gone(text) if text.contains(reason));
            assert!(is_so, "{answer}: {found:?}");
        }
    }
}
