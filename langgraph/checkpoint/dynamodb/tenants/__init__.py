"""One saver for many tenants: it signs each request with the credentials of the tenant that the caller serves."""

from .credentials import TenantCredentials
from .role import AssumeTenantRole

__all__ = ["AssumeTenantRole", "TenantCredentials"]
