//! Leave to ask hosts, where others may ask them at another time.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use tokio::time::sleep_until;

/// Until when requests may be sent, and be under way.
pub trait SendGuard: Send + Sync {
    /// That moment, as it is known now: it may be put off.
    fn ends_at(&self) -> Instant;
}

/// Resolves when the time of a guard is over, with the moment at which it was; never without one.
///
/// The clock is read whenever it is polled: the timers of a process that was frozen may not have
/// been looked at yet when an answer wakes it.
pub(crate) async fn until_over(guard: Option<&dyn SendGuard>) -> Instant {
    let Some(guard) = guard else {
        return pending().await;
    };
    let mut timer = pin!(sleep_until(guard.ends_at().into()));
    poll_fn(|context| {
        loop {
            let ends_at = guard.ends_at();
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

    impl SendGuard for Until {
        fn ends_at(&self) -> Instant {
            *self.0.lock().unwrap()
        }
    }

    #[tokio::test]
    async fn ours_a_guard_whose_end_is_put_off_holds_until_then() {
        let begun = Instant::now();
        let guard = Until(Mutex::new(begun + Duration::from_millis(20)));
        let later = begun + Duration::from_millis(60);
        let over = until_over(Some(&guard));
        let put_off = async { *guard.0.lock().unwrap() = later };
        assert_eq!(tokio::join!(over, put_off).0, later);
        assert!(Instant::now() >= later);
        // One that is over lets nothing begin, and without one nothing ends.
        until_over(Some(&guard)).await;
        let mut without = pin!(until_over(None));
        let polled = poll_fn(|context| Poll::Ready(without.as_mut().poll(context).is_pending()));
        assert!(polled.await);
    }
}
