//! The tasks of the agent's thread.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use classyard::Progress;
use classyard_datapath::pipeline::{Plan, Planner};
use classyard_ports::LinkEvents;
use tokio::sync::{Notify, mpsc};
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::connection::Shared;
use crate::worker::Waker;

/// The time between two looks at timeouts, silent controllers and ended workers.
const TICK: Duration = Duration::from_millis(100);

/// The pause before packets for controllers that wait for their rate are tried again.
const RATE_PAUSE: Duration = Duration::from_millis(1);

/// The time after which links are read without a report of the system.
const LINK_PAUSE: Duration = Duration::from_secs(1);

/// The pause of the planner after a plan, and after nothing was to be planned.
const PLANNER_PAUSE: Duration = Duration::from_millis(500);

/// Takes the reports of workers after each notice.
pub(super) async fn take_reports(state: Shared, news: Arc<Notify>) {
    loop {
        news.notified().await;
        while state.borrow_mut().take_reports() {
            sleep(RATE_PAUSE).await;
        }
    }
}

/// Does what is due at a time. Ends if a worker has ended, with the number of the worker.
pub(super) async fn tick(state: Shared) -> usize {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        state.borrow_mut().tick();
        if let Some(worker) = state.borrow().ended_worker() {
            return worker;
        }
        while state.borrow_mut().maintain() {
            yield_now().await;
        }
    }
}

/// Reads the links of the ports whenever the thread of links has news.
pub(super) async fn read_links(state: Shared, news: Arc<Notify>) {
    loop {
        news.notified().await;
        state.borrow_mut().read_links();
    }
}

/// The thread that waits for changes of links. It ends when this is dropped.
pub(super) struct LinkThread {
    is_ended: Arc<AtomicBool>,
    waker: Waker,
}

impl LinkThread {
    /// Starts the thread. It notifies after each change of any link, and once in
    /// [`LINK_PAUSE`], for devices that report no change.
    ///
    /// # Errors
    /// The system's error if it has no socket or no thread left.
    pub(super) fn start(news: Arc<Notify>) -> std::io::Result<LinkThread> {
        let events = LinkEvents::open()?;
        let waker = Waker::new()?;
        let is_ended = Arc::new(AtomicBool::new(false));
        let thread = LinkThread {
            is_ended: Arc::clone(&is_ended),
            waker: waker.clone(),
        };
        thread::Builder::new()
            .name("links".to_owned())
            .spawn(move || {
                while !is_ended.load(Ordering::Relaxed) {
                    let slept = waker.sleep(std::iter::once(events.as_fd()), LINK_PAUSE);
                    if let Err(error) = slept.and_then(|()| events.drain()) {
                        tracing::warn!("changes of links were lost: {error}");
                        thread::park_timeout(LINK_PAUSE);
                    }
                    news.notify_one();
                }
            })?;
        Ok(thread)
    }
}

impl Drop for LinkThread {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}

/// Installs plans that re-optimise engines. A thread of its own computes them.
pub(super) async fn install_plans(state: Shared, mut plans: mpsc::Receiver<Plan>) {
    while let Some(plan) = plans.recv().await {
        state.borrow_mut().install(plan);
    }
}

/// The thread that computes plans. It ends when this is dropped.
pub(super) struct PlannerThread {
    is_ended: Arc<AtomicBool>,
    thread: thread::Thread,
}

/// Stops the computation of a plan when the switch ends.
struct Stop(Arc<AtomicBool>);

impl Progress for Stop {
    fn report(&mut self, _: &'static str, _: usize, _: usize) -> ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl PlannerThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system's error if it has no thread left.
    pub(super) fn start(
        mut planner: Planner,
    ) -> std::io::Result<(PlannerThread, mpsc::Receiver<Plan>)> {
        let (sender, plans) = mpsc::channel(1);
        let is_ended = Arc::new(AtomicBool::new(false));
        let mut stop = Stop(Arc::clone(&is_ended));
        let thread = thread::Builder::new().name("planner".to_owned());
        let thread = thread.spawn(move || {
            while !stop.0.load(Ordering::Relaxed) {
                match planner.plan(&mut stop) {
                    Ok(Some(plan)) => {
                        if sender.blocking_send(plan).is_err() {
                            return;
                        }
                    }
                    Ok(None) => {}
                    Err(error) => tracing::debug!("no plan: {error}"),
                }
                thread::park_timeout(PLANNER_PAUSE);
            }
        })?;
        let thread = thread.thread().clone();
        Ok((PlannerThread { is_ended, thread }, plans))
    }
}

impl Drop for PlannerThread {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}
