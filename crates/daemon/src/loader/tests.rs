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
