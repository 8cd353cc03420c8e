//! Results as CSV tables (RFC 4180).

use std::fmt::Write as _;

use super::Results;

impl Results {
    /// A row for each event.
    #[must_use]
    pub fn events_csv(&self) -> String {
        let mut text = String::from(
            "label,kind,at_s,last_step_s,convergence_s,quiet_after_s,updates,changes\r\n",
        );
        for event in &self.events {
            let optional = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
            line(
                &mut text,
                &[
                    quoted(&event.label),
                    event.kind.to_owned(),
                    event.at_s.to_string(),
                    event.last_step_s.to_string(),
                    optional(event.convergence_s),
                    optional(event.quiet_after_s),
                    event.updates.to_string(),
                    event.changes.to_string(),
                ],
            );
        }
        text
    }

    /// A row for each address and each time at which its shares changed.
    #[must_use]
    pub fn shares_csv(&self) -> String {
        let mut text = String::from("address,at_s,owner,deceived,without\r\n");
        for address in &self.addresses {
            for share in &address.shares {
                line(
                    &mut text,
                    &[
                        address.address.clone(),
                        share.at_s.to_string(),
                        share.owner.to_string(),
                        share.deceived.to_string(),
                        share.without.to_string(),
                    ],
                );
            }
        }
        text
    }

    /// A row for each change of a router's route to a watched address.
    #[must_use]
    pub fn outcomes_csv(&self) -> String {
        let head = "address,router,at_s,leads_to,prefix,next_hop,origin,path\r\n";
        let mut text = String::from(head);
        for outcome in &self.outcomes {
            let mut cells = vec![
                outcome.address.clone(),
                quoted(&outcome.router),
                outcome.at_s.to_string(),
                outcome.leads_to.to_owned(),
            ];
            cells.extend(outcome.route.iter().map(|cell| quoted(cell)));
            line(&mut text, &cells);
        }
        text
    }

    /// A row for each router.
    #[must_use]
    pub fn routers_csv(&self) -> String {
        let mut text = String::from("name,asn,updates_sent,updates_received,changes\r\n");
        for router in &self.per_router {
            let name = quoted(&router.name);
            let _ = write!(
                text,
                "{name},{},{},{},{}\r\n",
                router.asn, router.updates_sent, router.updates_received, router.changes
            );
        }
        text
    }
}

fn line(text: &mut String, cells: &[String]) {
    text.push_str(&cells.join(","));
    text.push_str("\r\n");
}

/// Quotes a cell if it needs quotes.
fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
