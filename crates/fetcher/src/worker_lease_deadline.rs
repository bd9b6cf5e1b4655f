//! The deadline of a worker's permission to send requests to hosts that other workers may take
//! over.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use tokio::time::sleep_until;

/// Provides the deadline for requests. No request starts or continues after this time.
pub trait SendDeadlineSource: Send + Sync {
    /// Returns the current deadline, which may be extended later.
    fn ends_at(&self) -> Instant;
}

/// Waits for the deadline, and resolves to it once it has passed. Never resolves without a
/// `deadline_source`.
///
/// Every poll reads the clock, because after a freeze of the process an answer may wake the task
/// before its timers fire.
pub(crate) async fn until_over(deadline_source: Option<&dyn SendDeadlineSource>) -> Instant {
    let Some(deadline_source) = deadline_source else {
        return pending().await;
    };
    let mut timer = pin!(sleep_until(deadline_source.ends_at().into()));
    poll_fn(|context| {
        loop {
            let ends_at = deadline_source.ends_at();
            if Instant::now() >= ends_at {
                return Poll::Ready(ends_at);
            }
            if timer.deadline() != ends_at.into() {
                timer.as_mut().reset(ends_at.into());
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    struct Until(Mutex<Instant>);

    impl SendDeadlineSource for Until {
        fn ends_at(&self) -> Instant {
            *self.0.lock().unwrap()
        }
    }

    #[tokio::test]
    async fn an_extended_deadline_holds() {
        let begun = Instant::now();
        let deadline_source = Until(Mutex::new(begun + Duration::from_millis(20)));
        let later = begun + Duration::from_millis(60);
        let over = until_over(Some(&deadline_source));
        let put_off = async { *deadline_source.0.lock().unwrap() = later };
        assert_eq!(tokio::join!(over, put_off).0, later);
        assert!(Instant::now() >= later);
        // After the deadline, the future resolves immediately. Without a deadline, the future never
        // resolves.
        until_over(Some(&deadline_source)).await;
        let mut without = pin!(until_over(None));
        let polled = poll_fn(|context| Poll::Ready(without.as_mut().poll(context).is_pending()));
        assert!(polled.await);
    }
}
