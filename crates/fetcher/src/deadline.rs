//! The state of a request under way, so that an answer's time begins when its connection stands.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

tokio::task_local! {
    /// Of the request that this task waits for.
    static STAGE: watch::Sender<RequestStage>;
}

/// The step that a request is waiting for.
#[derive(Clone, Copy, Debug)]
enum RequestStage {
    /// A connection: name, socket, TLS.
    Connection,
    /// An answer, since then. A request that takes a kept connection begins here.
    Answer(Instant),
}

/// The reason why a request was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimedOut {
    /// The whole time was over before a connection stood.
    Connection,
    /// The whole time was over before the head of an answer had come.
    Head,
    /// The connection stood, and the time for an answer's head was over.
    FirstByte,
}

/// Waits for `request` until `deadline`, and no longer than `first_byte` from the moment when
/// its connection stands. The connections must be [`noted`].
pub(crate) async fn in_time<F: Future>(
    request: F,
    first_byte: Duration,
    deadline: Instant,
) -> Result<F::Output, TimedOut> {
    let (sender, mut stage) = watch::channel(RequestStage::Answer(Instant::now()));
    let mut request = std::pin::pin!(STAGE.scope(sender, request));
    loop {
        let now = *stage.borrow_and_update();
        let (until, late) = match now {
            RequestStage::Connection => (deadline, TimedOut::Connection),
            RequestStage::Answer(since) if since + first_byte < deadline => {
                (since + first_byte, TimedOut::FirstByte)
            }
            RequestStage::Answer(_) => (deadline, TimedOut::Head),
        };
        tokio::select! {
            // The time first: a server that floods keeps the request busy at every turn, and
            // what is asked last of a busy task is never asked.
            biased;
            () = sleep_until(until) => return Err(late),
            Ok(()) = stage.changed() => {}
            output = &mut request => return Ok(output),
        }
    }
}

/// Notes in the request's [`RequestStage`] that its connection begins to be made, and when that
/// ends.
pub(crate) fn noted<F: Future>(connecting: F) -> impl Future<Output = F::Output> {
    // The client may go on with a connection after the request took another one, so the request is
    // remembered here and not looked for at the end.
    let stage = STAGE.try_with(watch::Sender::clone).ok();
    if let Some(stage) = &stage {
        stage.send_replace(RequestStage::Connection);
    }
    async move {
        let connected = connecting.await;
        if let Some(stage) = stage {
            stage.send_replace(RequestStage::Answer(Instant::now()));
        }
        connected
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const SOON: Duration = Duration::from_millis(10);
    const LATE: Duration = Duration::from_secs(3600);

    async fn check(
        (connects, answers): (bool, bool),
        (first_byte, total): (Duration, Duration),
        expect: Result<(), TimedOut>,
    ) {
        let request = async move {
            noted(async {
                if !connects {
                    pending::<()>().await;
                }
            })
            .await;
            // The waiting task is told that the connection stands before it goes on.
            tokio::task::yield_now().await;
            if !answers {
                pending::<()>().await;
            }
        };
        let found = in_time(request, first_byte, Instant::now() + total).await;
        assert_eq!(found, expect);
    }

    #[tokio::test]
    async fn an_answers_time_begins_when_the_connection_stands() {
        check((true, true), (LATE, LATE), Ok(())).await;
        check((true, false), (SOON, LATE), Err(TimedOut::FirstByte)).await;
        check((true, false), (LATE, SOON), Err(TimedOut::Head)).await;
        // The time of an answer does not run yet: it would be over long before.
        let second = Duration::from_secs(1);
        check(
            (false, false),
            (second, 2 * second),
            Err(TimedOut::Connection),
        )
        .await;
        // A kept connection needs no making.
        let kept = in_time(pending::<()>(), SOON, Instant::now() + LATE).await;
        assert_eq!(kept, Err(TimedOut::FirstByte));
        let now = Instant::now();
        assert_eq!(in_time(ready(1), LATE, now + LATE).await, Ok(1));
    }
}
