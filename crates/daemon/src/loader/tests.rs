use super::*;
use crate::config;
use crate::config::Settings;
use filter::FilterSet;
use std::path::Path;

fn in_force(text: &str) -> InForce {
    let settings = config::parse(Path::new("headend.toml"), text.as_bytes()).unwrap();
    InForce {
        settings: Arc::new(settings),
        filters: Arc::new(FilterSet::default()),
        paths: 1,
        own: Vec::new(),
        terminates: false,
    }
}

const BEFORE: &str = "[control]\nsocket = \"/run/x.sock\"\n[lns]\nlisten = [\"127.0.0.1:1701\"]\n[l2tp]\nhello_interval_s = 7\n";

fn wait(loader: &mut Loader) -> Outcome {
    loop {
        if let Some(outcome) = loader.take() {
            return outcome;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_configuration_is_compared_on_the_thread_and_the_old_one_freed_there() {
    let mut loader = Loader::new().unwrap();
    let before = in_force(BEFORE);
    let old = Arc::clone(&before.settings);
    let mut wanted = Settings::clone(&old);
    let text = BEFORE.replace("= 7", "= 8");
    wanted.record = in_force(&text).settings.record.clone();
    let order = Order {
        wanted: Wanted::Before(Arc::new(wanted)),
        in_force: before,
    };
    loader.prepare(order).unwrap();
    let prepared = wait(&mut loader).unwrap();
    let rows: Vec<_> = prepared.changed.iter().map(|one| &one.row).collect();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&*rows[0].key, &*rows[0].effect),
        ("l2tp.hello_interval_s", "applied")
    );
    let weak = Arc::downgrade(&old);
    loader.free(Box::new(old));
    while weak.upgrade().is_some() {
        std::thread::yield_now();
    }
}

#[test]
fn a_file_that_is_missing_is_a_fault_and_the_next_preparation_works() {
    let mut loader = Loader::new().unwrap();
    for _ in 0..2 {
        let order = Order {
            wanted: Wanted::File("/nonexistent/headend.toml".into()),
            in_force: in_force(BEFORE),
        };
        loader.prepare(order).unwrap();
        let faults = wait(&mut loader).err().unwrap();
        assert!(faults.contains("cannot be read"), "{faults}");
    }
}

#[test]
fn a_thread_that_ended_is_reported_and_started_again() {
    let mut loader = Loader::new().unwrap();
    let (tasks, _) = mpsc::channel();
    let (_, outcomes) = mpsc::channel();
    loader.thread = Some(Thread { tasks, outcomes });
    assert_eq!(wait(&mut loader).err().unwrap(), PANICKED);
    let order = Order {
        wanted: Wanted::Before(in_force(BEFORE).settings),
        in_force: in_force(BEFORE),
    };
    loader.prepare(order).unwrap();
    assert!(wait(&mut loader).unwrap().changed.is_empty());
}

#[test]
fn pools_of_addresses_and_of_prefixes_are_made_on_the_thread() {
    let text = "[control]\nsocket = \"/run/x.sock\"\n[lns]\nlisten = [\"127.0.0.1:1701\"]\n\
                [ppp]\naddress = \"10.255.0.1\"\nauthenticate = \"nobody\"\n\
                [[pool]]\nname = \"a\"\nranges = [\"10.0.0.0/29\"]\n\
                [[prefix_pool]]\nname = \"homes\"\nranges = [\"2001:db8::/40\"]\nlength = 56\n";
    let before = InForce {
        terminates: true,
        ..in_force(text)
    };
    let wanted = in_force(&text.replace("/40", "/41")).settings;
    let mut loader = Loader::new().unwrap();
    let order = Order {
        wanted: Wanted::Before(wanted),
        in_force: before,
    };
    loader.prepare(order).unwrap();
    let mut prepared = wait(&mut loader).unwrap();
    assert!(matches!(prepared.pools, Ok(Some(_))));
    let new = std::mem::replace(&mut prepared.prefix_pools, Ok(None));
    let mut pools = aaa::PrefixPools::new(1);
    pools.replace(new.unwrap().expect("pools, because the edge terminates"));
    assert_eq!(pools.views().next().unwrap().size, 1 << 15);
}
