"""A launch becomes a process: the house, its doors, and those who look after them."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time

from llmgw import __version__
from llmgw.about import CODE
from llmgw.daemon.bulletin import Bulletin
from llmgw.daemon.control import ControlServer
from llmgw.daemon.descriptors import DescriptorWatch
from llmgw.daemon.front import Front
from llmgw.daemon.heartbeat import Heartbeat
from llmgw.daemon.house import House
from llmgw.daemon.loop import new_loop
from llmgw.daemon.memory import settle_heap, tune_allocator
from llmgw.daemon.operations import Operations
from llmgw.daemon.process import Process
from llmgw.daemon.records import Records
from llmgw.daemon.reloading import Reloading
from llmgw.daemon.signing import signing_secret
from llmgw.daemon.source import tell_loaded
from llmgw.daemon.start import Launch, StartRefused
from llmgw.daemon.successor import own_command
from llmgw.daemon.tally import Tally
from llmgw.daemon.threads import tune_threads
from llmgw.observe.metrics import EVENT_LOOP_LAG
from llmgw.runtime.express import Express
from llmgw.runtime.reload import Reloads
from llmgw.runtime.tasks import Supervisor
from llmgw.store.errors import StoreError
from llmgw.store.store import open_store
from llmgw.web.admin.pages import admin_pages
from llmgw.web.express import ExpressDoor
from llmgw.web.live import LiveDoor
from llmgw.web.pages import metrics_pages, public_pages
from llmgw.web.server import WebServer
from llmgw.web.site import Site

log = logging.getLogger("llmgw")


def run(launch: Launch) -> None:
    """Serve until told to stop. Raises `StartRefused`."""
    tune_allocator()
    tune_threads()
    with asyncio.Runner(
        loop_factory=lambda: new_loop(os.environ.get("XLOOP", "asyncio"))
    ) as runner:
        runner.run(serve(launch))


async def serve(launch: Launch) -> None:
    """Run the gateway until it is told to stop."""
    log.info("starting gateway", extra={"version": __version__, "code": CODE, "pid": os.getpid()})
    tell_loaded(launch.loaded, launch.source)
    supervisor = Supervisor()
    house = await _house(launch, supervisor)
    front = _front(house, supervisor, signing_secret(launch.places.state))
    bulletin = Bulletin(launch.places)
    bulletin.loaded(launch.loaded)
    reloading = Reloading(
        launch.source, house, front, launch.notifier, bulletin, launch.loaded.config
    )
    process = Process(
        house,
        front,
        supervisor=supervisor,
        notifier=launch.notifier,
        bulletin=bulletin,
        reloads=Reloads(reloading.once),
        command=own_command(),
        settle=settle_heap,
    )
    supervisor.loop("heartbeat", _heartbeat(launch).run)
    supervisor.loop("descriptors", DescriptorWatch().run)
    control = await _control(launch, house)
    try:
        await process.run(launch.opening, launch.inheritance.ready_fd)
    finally:
        control.close()


async def _house(launch: Launch, supervisor: Supervisor) -> House:
    """Raises `StartRefused` where the database can't be used."""
    instance = secrets.token_hex(6)
    try:
        store = await open_store(
            launch.loaded.database_url, state_dir=launch.places.state, instance=instance
        )
    except StoreError as error:
        raise StartRefused((str(error),)) from error
    records = Records(store, supervisor, fresh=not launch.inheritance.is_upgrade)
    house = House(launch.loaded, supervisor, records, instance=instance)
    await house.prepare()
    return house


async def _control(launch: Launch, house: House) -> ControlServer:
    """Without it the gateway serves all the same: only its commands miss it."""
    control = ControlServer(launch.places.control, Operations(house).by_name())
    try:
        await control.start()
    except OSError as error:  # above all a path longer than 107 bytes (unix(7))
        log.warning("control socket not opened", extra={"reason": error.strerror or str(error)})
    return control


def _front(house: House, supervisor: Supervisor, secret: bytes) -> Front:
    gateway = house.gateway
    live = LiveDoor(gateway, house.sockets, lambda: gateway.draining)
    admin = admin_pages(gateway, house.records.store.usage, supervisor.spawn, secret=secret)
    pages = public_pages(gateway, (*live.pages, *admin), upgrades=live.upgrades)
    public = Site(gateway, pages, on_complete=Tally(gateway))
    public.take = ExpressDoor(gateway, Express(gateway), tell=public.tell).take
    return Front(WebServer(public), WebServer(Site(gateway, metrics_pages(gateway))))


def _heartbeat(launch: Launch) -> Heartbeat:
    return Heartbeat(
        observe_lag=EVENT_LOOP_LAG.observe,
        ping=launch.notifier.watchdog,
        ping_every=launch.watchdog,
        clock=time.monotonic,
    )
