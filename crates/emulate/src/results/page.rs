//! Results as one self-contained HTML page.

use plot::number::grouped;
use plot::{Block, Page};

use super::charts::rounded;
use super::{LISTED_MAX, Results};

impl Results {
    /// The page with the timeline, the charts and the tables.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut page = Page::new(self.title.clone());
        page.subtitle = format!(
            "{} routers, {} links, seed {}, {} s",
            grouped(self.routers as f64, 0),
            grouped(self.links as f64, 0),
            self.seed,
            rounded(self.end_s)
        );
        page = page.with(Block::Text(format!(
            "{} messages were sent, {} of them UPDATEs. At the end {} ends of sessions were up; {} had been lost.",
            grouped(self.messages as f64, 0),
            grouped(self.updates as f64, 0),
            grouped(self.endpoints_up as f64, 0),
            grouped(self.sessions_lost as f64, 0)
        )));
        page = page
            .with(Block::Heading("What happened".to_owned()))
            .with(self.time_line());
        for chart in self.charts() {
            page = page.with(chart);
        }
        if !self.addresses.is_empty() {
            page = page
                .with(Block::Heading("Addresses".to_owned()))
                .with(self.address_table());
        }
        let heading = Block::Heading("Routers that sent the most UPDATEs".to_owned());
        page.with(heading).with(self.router_table()).to_html()
    }

    fn time_line(&self) -> Block {
        let head = [
            "at (s)",
            "event",
            "converged after (s)",
            "last UPDATE after (s)",
            "UPDATEs",
            "best routes changed",
        ];
        let optional =
            |value: Option<f64>| value.map_or("-".to_owned(), |v| rounded(v).to_string());
        let row = |event: &super::EventResult| {
            vec![
                rounded(event.at_s).to_string(),
                event.label.clone(),
                optional(event.convergence_s),
                optional(event.quiet_after_s),
                grouped(event.updates as f64, 0),
                grouped(event.changes as f64, 0),
            ]
        };
        table(&head, self.events.iter().map(row).collect())
    }

    fn address_table(&self) -> Block {
        let head = [
            "address",
            "owner",
            "reached by (%)",
            "deceived at the end (%)",
            "deceived, mean over time (%)",
            "deceived at most (%)",
        ];
        let percent = |share: f64| rounded(100.0 * share).to_string();
        let row = |address: &super::AddressResult| {
            let last = address.shares.last();
            vec![
                address.address.clone(),
                format!("AS{}", address.owner_asn),
                percent(last.map_or(0.0, |share| 1.0 - share.without)),
                percent(last.map_or(0.0, |share| share.deceived)),
                percent(address.mean.map_or(0.0, |mean| mean.deceived)),
                percent(address.deceived_max),
            ]
        };
        table(&head, self.addresses.iter().map(row).collect())
    }

    fn router_table(&self) -> Block {
        let mut routers: Vec<_> = self.per_router.iter().collect();
        routers.sort_by_key(|router| std::cmp::Reverse(router.updates_sent));
        let row = |router: &&super::RouterResult| {
            vec![
                router.name.clone(),
                format!("AS{}", router.asn),
                grouped(f64::from(router.updates_sent), 0),
                grouped(f64::from(router.updates_received), 0),
                grouped(f64::from(router.changes), 0),
            ]
        };
        let head = [
            "router",
            "AS",
            "UPDATEs sent",
            "UPDATEs received",
            "best routes changed",
        ];
        table(&head, routers.iter().take(LISTED_MAX).map(row).collect())
    }
}

fn table(head: &[&str], rows: Vec<Vec<String>>) -> Block {
    Block::Table {
        head: head.iter().map(|&name| name.to_owned()).collect(),
        rows,
    }
}
