//! The keys of a connection by generation, and how far the exchange for the next one is.
//!
//! The client goes on to the next generation when it has the server's answer, the server with the first frame that it opens under it.

use spray_core::Time;
use spray_wire::{Rekey, RekeyMessage, Sealed};

use crate::endpoint::{
    HandshakeConfig,
    admission::limit::RateLimit,
    admission::repeat::Repeat,
    seal::exchange::{Agreed, Bond, Initiator, Responder},
    seal::{Opener, Sealer, Verdict, generation},
};
use crate::keys::{Keys, PublicKey};

/// How long a generation serves before its client asks for the next one, in picoseconds.
const REKEY_PS: u64 = 120_000_000_000_000;
/// Connections that began together ask within so long, so that no poll has all of their exchanges.
const SPREAD_PS: u64 = 8_000_000_000_000;
/// How far apart a client's repetitions are when the attempts of a handshake are used up. They do not end the connection; the age of its keys
/// does.
const SLOWLY_PS: u64 = 1_000_000_000_000;
/// Least time between two exchanges of a connection that its server reads, in picoseconds.
const LEAST_PS: u64 = 60_000_000_000_000;

/// Of exchanges that a server reads for all of its connections: 16 at once, and 1,000 a second, some 100 us each.
pub(crate) type Rekeys = RateLimit<16, 1_000_000_000>;

/// What seals a connection's frames and opens the peer's.
#[derive(Debug)]
pub(crate) struct Seals {
    pub(crate) sealer: Sealer,
    /// Of the current generation.
    pub(crate) opener: Opener,
    /// Of the one before. Frames of several paths may still come under it.
    previous: Option<Box<Opener>>,
    bond: Bond,
    /// When the current generation began here.
    pub(crate) since: Time,
    role: Role,
}

/// Which side of the exchanges this is, and how far the next one is.
#[derive(Debug)]
enum Role {
    /// It asks: when next, and what.
    Client { repeat: Repeat, asking: Option<Box<Asking>> },
    /// It answers: when it last read a message, and what it answered.
    Server { read_at: Time, answered: Option<Box<Answered>> },
}

/// A client's exchange, until the answer comes.
#[derive(Debug)]
struct Asking {
    initiator: Initiator,
    message: RekeyMessage,
    /// An answer may be read: none was since the message went last. To read one costs as much as to make one.
    reads: bool,
}

/// A server's exchange, until a frame of the next generation comes.
#[derive(Debug)]
struct Answered {
    asked: RekeyMessage,
    answer: RekeyMessage,
    sealer: Sealer,
    opener: Opener,
    bond: Bond,
}

/// Why a message of an exchange changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is of another exchange than the one that is due, or of the wrong side.
    Unexpected,
    /// It does not prove itself.
    Forged,
    /// There was one a short time ago, or there are too many of all connections.
    TooMany,
}

impl Seals {
    /// The first generation of a connection that was begun here.
    pub(crate) fn of_client(now: Time, agreed: &Agreed) -> Self {
        let role = Role::Client { repeat: Repeat::start(due(now, &agreed.bond)), asking: None };
        Self::first(now, agreed, role)
    }

    /// The first generation of a connection that the peer began.
    pub(crate) fn of_server(now: Time, agreed: &Agreed) -> Self {
        Self::first(now, agreed, Role::Server { read_at: now, answered: None })
    }

    fn first(now: Time, Agreed { secrets, bond }: &Agreed, role: Role) -> Self {
        let (sealer, opener) = (Sealer::new(&secrets.sending, 0), Opener::new(&secrets.receiving, 0));
        Self { sealer, opener, previous: None, bond: *bond, since: now, role }
    }

    /// The peer's key, which every exchange of the connection proves.
    pub(crate) fn peer(&self) -> PublicKey {
        self.bond.peer()
    }

    /// Judges a frame, and decrypts its payload in place if it is genuine.
    #[inline]
    pub(crate) fn open(&mut self, now: Time, sealed: Sealed<'_>) -> Verdict {
        if generation(sealed.number) == self.opener.generation() {
            return self.opener.open(sealed);
        }
        self.open_other(now, sealed)
    }

    /// Opens a frame of the generation before, or of the one after if we have answered its exchange.
    //= docs/specs/wire.md#WIRE-19 numbers and keys
    #[cold]
    fn open_other(&mut self, now: Time, sealed: Sealed<'_>) -> Verdict {
        let of = generation(sealed.number);
        if let Some(previous) = self.previous.as_deref_mut().filter(|previous| previous.generation() == of) {
            return previous.open(sealed);
        }
        if of == self.next_generation()
            && let Role::Server { answered, .. } = &mut self.role
            && let Some(Answered { opener, .. }) = answered.as_deref_mut()
        {
            let verdict = opener.open(sealed);
            if verdict == Verdict::Genuine
                && let Some(answered) = answered.take()
            {
                let Answered { sealer, opener, bond, .. } = *answered;
                self.go_on(now, sealer, opener, bond);
            }
            return verdict;
        }
        // Generations begin again after 2^16 of them: half of those are before the current one.
        let is_old = self.opener.generation().wrapping_sub(of) < 1 << 15;
        if is_old { Verdict::Replayed } else { Verdict::Forged }
    }

    /// Which generation the next exchange is about.
    pub(crate) fn next_generation(&self) -> u16 {
        self.opener.generation().wrapping_add(1)
    }

    /// The message that a client sends when [`Seals::asks_at`] has come, the same until it is answered. `None` if the system has no random
    /// numbers.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn ask(&mut self, now: Time, keys: &Keys, config: &HandshakeConfig) -> Option<Rekey> {
        let generation = self.next_generation();
        let Role::Client { repeat, asking } = &mut self.role else { return None };
        if !repeat.again(now, config) {
            *repeat = Repeat::none_until(now.after(SLOWLY_PS));
        }
        if asking.is_none() {
            let (initiator, message) = Initiator::again(keys, &self.bond, generation)?;
            *asking = Some(Box::new(Asking { initiator, message, reads: false }));
        }
        let asking = asking.as_deref_mut()?;
        asking.reads = true;
        Some(Rekey { generation, message: asking.message, answer: false })
    }

    /// Takes the server's answer: what a client sends is of the next generation from now on.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn take_answer(&mut self, now: Time, rekey: &Rekey) -> Result<(), Unusable> {
        let is_next = rekey.generation == self.next_generation();
        let Role::Client { asking: Some(asking), .. } = &mut self.role else { return Err(Unusable::Unexpected) };
        if !is_next {
            return Err(Unusable::Unexpected);
        }
        if !std::mem::take(&mut asking.reads) {
            return Err(Unusable::TooMany);
        }
        let agreed = asking.initiator.finish_again(&rekey.message).ok_or(Unusable::Forged)?;
        let (sealer, opener) = self.next(&agreed);
        self.go_on(now, sealer, opener, agreed.bond);
        self.role = Role::Client { repeat: Repeat::start(due(now, &agreed.bond)), asking: None };
        Ok(())
    }

    /// Takes a client's message, and returns the answer. From then on a server opens the next generation, and seals by it once it has
    /// opened a frame of it.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn take_request(
        &mut self,
        now: Time,
        keys: &Keys,
        rekey: &Rekey,
        limit: &mut Rekeys,
    ) -> Result<Rekey, Unusable> {
        let generation = self.next_generation();
        let Role::Server { read_at, answered } = &mut self.role else { return Err(Unusable::Unexpected) };
        if rekey.generation != generation {
            return Err(Unusable::Unexpected);
        }
        let answer = |message| Rekey { generation, message, answer: true };
        if let Some(known) = answered.as_deref().filter(|known| known.asked == rekey.message) {
            return Ok(answer(known.answer));
        }
        if answered.is_some() || now.since(*read_at) < LEAST_PS || !limit.allow(now) {
            return Err(Unusable::TooMany);
        }
        *read_at = now;
        let responder = Responder::again(keys, &self.bond, generation, &rekey.message);
        let (agreed, message) = responder.and_then(Responder::answer_again).ok_or(Unusable::Forged)?;
        let (sealer, opener) = self.next(&agreed);
        let made = Answered { asked: rekey.message, answer: message, sealer, opener, bond: agreed.bond };
        self.role = Role::Server { read_at: now, answered: Some(Box::new(made)) };
        Ok(answer(message))
    }

    /// When a client asks next.
    pub(crate) fn asks_at(&self) -> Time {
        match &self.role {
            Role::Client { repeat, .. } => repeat.at,
            Role::Server { .. } => Time::NEVER,
        }
    }

    fn next(&self, agreed: &Agreed) -> (Sealer, Opener) {
        let generation = self.next_generation();
        (Sealer::new(&agreed.secrets.sending, generation), Opener::new(&agreed.secrets.receiving, generation))
    }

    /// Of the generation before the previous one nothing is left.
    fn go_on(&mut self, now: Time, sealer: Sealer, opener: Opener, bond: Bond) {
        self.sealer = sealer;
        let previous = std::mem::replace(&mut self.opener, opener);
        // In the same place as the one before it.
        match &mut self.previous {
            Some(place) => **place = previous,
            None => self.previous = Some(Box::new(previous)),
        }
        (self.bond, self.since) = (bond, now);
    }
}

/// When the client asks for the generation after the one that begins now.
fn due(now: Time, bond: &Bond) -> Time {
    now.after(REKEY_PS + bond.number() % SPREAD_PS)
}

#[cfg(test)]
mod tests;
