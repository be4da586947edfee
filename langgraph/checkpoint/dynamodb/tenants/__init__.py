"""One saver for many tenants: it signs each request with the credentials of the tenant that the caller serves."""

from langgraph.checkpoint.dynamodb.tenants.credentials import TenantCredentials
from langgraph.checkpoint.dynamodb.tenants.role import AssumeTenantRole

__all__ = ["AssumeTenantRole", "TenantCredentials"]
