"""${message}"""

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Only add: a program that knows nothing of it must be able to go on."""
    ${upgrades if upgrades else "pass"}
