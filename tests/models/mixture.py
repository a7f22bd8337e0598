"""A mixture of experts as of Mixtral: a router chooses two of four for each token."""

import torch
from torch import nn

HIDDEN, EXPERTS, CHOSEN, TOKENS = 32, 4, 2, 6


class Mixture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(HIDDEN, 2 * HIDDEN), nn.SiLU(), nn.Linear(2 * HIDDEN, HIDDEN))
            for _ in range(EXPERTS)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = torch.topk(torch.softmax(self.router(x), dim=-1), CHOSEN)
        weights = weights / weights.sum(-1, keepdim=True)
        shares = [(weights * (chosen == number)).sum(-1, keepdim=True) for number in range(EXPERTS)]
        answers = [share * expert(x) for share, expert in zip(shares, self.experts, strict=True)]
        return torch.stack(answers).sum(0)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Mixture().eval()


def example_inputs() -> torch.Tensor:
    return torch.randn(2, TOKENS, HIDDEN)
